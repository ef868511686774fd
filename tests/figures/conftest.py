"""Every figure is arranged anew."""

import pytest


@pytest.fixture(autouse=True)
def _new_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcomp.figures.layout._known_places", {})
