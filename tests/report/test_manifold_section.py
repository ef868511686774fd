"""Manifolds with and without the extra that draws them by UMAP."""

import sys
from types import SimpleNamespace

import pytest

from tfcomp.report import manifold_section
from tfcomp.report.page import Section


def make_section(monkeypatch: pytest.MonkeyPatch) -> Section:
    for name in ("make_ranks", "make_pca", "make_umap"):
        monkeypatch.setattr(manifold_section, name, lambda _, name=name: name)
    return manifold_section.make_manifolds(["a run"])


def test_umap_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold_section, "has_umap", lambda: True)
    section = make_section(monkeypatch)
    assert section.exhibits == ["make_ranks", "make_pca", "make_umap"]


def test_without_umap_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    section = make_section(monkeypatch)
    assert section.exhibits == ["make_ranks", "make_pca"]
    hint = "UMAP is left out: pip install 'tfcomp[umap]' adds it."
    assert section.introduction.endswith(hint)


def test_report_survives_umap(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise OSError("its process has ended: LLVM ERROR")

    monkeypatch.setattr(manifold_section, "has_umap", lambda: True)
    monkeypatch.setattr(manifold_section, "make_umap", fail)
    run = SimpleNamespace(name="donut")
    assert manifold_section.try_umap(run) == []
    line = "UMAP of donut is left out: its process has ended: LLVM ERROR\n"
    assert capsys.readouterr().err == line
