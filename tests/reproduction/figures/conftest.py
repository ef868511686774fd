"""Dozens of figures are drawn here: fast ones."""

import pytest


@pytest.fixture(autouse=True)
def _rough_figures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tfcomp.figures.exhibits.figure_to_pdf", lambda _: b"")
    # Its compiler takes half a minute.
    monkeypatch.setattr("tfcomp.report.stage_section.has_umap", lambda: False)
