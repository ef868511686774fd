"""Sections: those that users register, UMAP, and names of files."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tfcomp
from tfcomp.report import manifold_section
from tfcomp.report.page import (
    SECTIONS,
    choose_sections,
    make_user_sections,
)
from tfcomp.report.report_build import MAKERS


def show(models: list) -> list[tfcomp.Exhibit]:
    rows = [{"model": model.name, "answer": 42} for model in models]
    return [tfcomp.Exhibit("answers", "Answers", "All of them.", rows=rows)]


def test_a_page_with_a_section_of_a_user(tmp_path: Path) -> None:
    """Names of levels, which name curves, are not names of files."""
    classes = np.stack(np.unravel_index(np.arange(24), (3, 8)), axis=1)
    images = np.random.default_rng(0).random((24, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        images,
        classes,
        names=["kind", "x"],
        levels=[["a/b", "a_b", "../c"], None],
    )
    result = tfcomp.evaluate(table.draw, table, region="x:3-4")
    tfcomp.register_section("mine", title="My part", text="Is it?")(show)
    path = result.write_report(tmp_path / "report", ["mine", "runs", "gaps"])
    page = path.read_text("utf-8")
    assert "Held out x:3-4. Made by tfcomp" in page  # above all numbers
    assert page.index("My part") > page.index("Runs and flags")
    assert 'id="section-own_mine"' in page and "All of them." in page
    own = path.with_name("own_mine_answers.csv").read_text()
    assert own.splitlines() == ["model,answer", "model,42"]
    assert {p.parent for p in tmp_path.rglob("*.csv")} == {path.parent}
    files = {p.name for p in path.parent.glob("*_gap_weights_*.csv")}
    assert files == {f"model_gap_weights_{i}.csv" for i in range(3)}


def fail(models: list) -> list:
    raise ZeroDivisionError("no\nmodels")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fail, "ZeroDivisionError: no models"),
        (lambda models: [1], "must return a list of tfcomp.Exhibit, got int"),
        (lambda models: None, "TypeError"),
        (lambda models: show(models) * 2, "names of exhibits must differ"),
    ],
)
def test_a_section_that_fails_is_left_out(
    function, words: str, capsys: pytest.CaptureFixture
) -> None:
    tfcomp.register_section("mine")(function)
    tfcomp.register_section("fine")(show)
    (section,) = make_user_sections([], ["fine", "mine"])
    assert section.anchor == "own_fine"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and words in lines[0]
    assert lines[0].startswith("note: the section 'mine' is left out: ")


def test_mistakes_of_registration() -> None:
    tfcomp.register_section("mine")(show)
    tfcomp.register_section("mine", title="Again")(show)  # the same function
    with pytest.raises(ValueError, match="'mine' is registered already"):
        tfcomp.register_section("mine")(fail)
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        tfcomp.register_section("../up")


def test_every_section_has_a_maker() -> None:
    assert [*MAKERS] == [name for name in SECTIONS if name != "explorer"]
    assert "umap" not in choose_sections([])
    assert choose_sections(["umap", "layers"]) == ["layers", "umap"]


def test_without_umap_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    analysis = SimpleNamespace(name="donut", components={})
    analysis.for_pairs = analysis
    section = manifold_section.make_umap([analysis])
    hint = "UMAP is left out: pip install 'tfcomp[umap]' adds it."
    assert not section.exhibits and section.finding == hint

    def fail(_: object) -> None:
        raise OSError("its process has ended: LLVM ERROR")

    monkeypatch.setattr(manifold_section, "has_umap", lambda: True)
    monkeypatch.setattr(manifold_section, "compute_umaps", fail)
    assert manifold_section.try_umap(analysis) == []
    line = "UMAP of donut is left out: its process has ended: LLVM ERROR\n"
    assert capsys.readouterr().err == line
