"""Manifolds with and without the extra that draws them by UMAP."""

import sys
from types import SimpleNamespace

import pytest

from tfcomp.report import manifold_section
from tfcomp.report.sections import choose_sections


def test_without_umap_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    section = manifold_section.make_umap([SimpleNamespace(name="donut")])
    hint = "UMAP is left out: pip install 'tfcomp[umap]' adds it."
    assert not section.exhibits and section.finding == hint


def test_umap_is_made_only_when_asked_for() -> None:
    assert "umap" not in choose_sections([])
    assert choose_sections(["umap", "layers"]) == ["layers", "umap"]


def test_report_survives_umap(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise OSError("its process has ended: LLVM ERROR")

    monkeypatch.setattr(manifold_section, "has_umap", lambda: True)
    monkeypatch.setattr(manifold_section, "draw_umap", fail)
    run = SimpleNamespace(name="donut")
    assert manifold_section.try_umap(run) == []
    line = "UMAP of donut is left out: its process has ended: LLVM ERROR\n"
    assert capsys.readouterr().err == line
