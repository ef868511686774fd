"""Figures are arranged as for users."""

import pytest


@pytest.fixture(autouse=True)
def _full_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcomp.figures.layout.MAX_LAYOUT_STEPS", 10)
    monkeypatch.setattr("tfcomp.figures.layout._known_places", {})
