"""Dozens of figures are drawn here: fast ones."""

import pytest


@pytest.fixture(autouse=True)
def _rough_figures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tfcomp.figures.exhibits.figure_to_pdf", lambda _: b"")
