"""The frame of all pages, and sections that users register."""

import html
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tfcomp
from tfcomp import analyze
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report import stage_section
from tfcomp.report.page import (
    SECTIONS,
    Answer,
    Section,
    choose_sections,
    make_user_sections,
    render_page,
)
from tfcomp.report.report_build import MAKERS
from tfcomp.report.score_table import Links

pytestmark = pytest.mark.usefixtures("untraced")

FILES = ("run.flags", "metrics.json", "model.keras")
EVIL = "\"'><script>evil()</script><img src=x onerror=evil()>&lt;"


def render(*sections: Section, text: str = "") -> str:
    exhibits = [exhibit for section in sections for exhibit in section.exhibits]
    answer = Answer([text], exhibits)
    return render_page(text, text, answer, sections, Path())


def test_texts_are_escaped():
    exhibit = Exhibit(EVIL, EVIL, EVIL, rows=[{EVIL: EVIL}])
    section = Section(EVIL, EVIL, EVIL, [exhibit], EVIL, {EVIL: EVIL})

    plain = render()
    page = render(section, text=EVIL)

    for tag in ("<script", "</script", "<img"):
        assert page.count(tag) == plain.count(tag)
    # In title, heading, sentence, subtitle, contents, section, finding, text
    # and its name, and of either exhibit title, caption and table.
    assert EVIL not in page
    assert html.unescape(page).count(EVIL) >= 18


def test_what_does_not_apply_is_not_shown():
    link = Links([("a", "../a #1/")])
    rows = [{"run": link, "x": None, "y": 1.0}, {"run": "b", "x": None, "y": 2}]
    filled = Section("b", "Has numbers", "", [Exhibit("t", "", "", rows=rows)])
    empty = Section("a", "Does not apply", "", [])

    page = render(empty, filled)

    assert "Has numbers" in page
    assert "Does not apply" not in page
    assert ">y</th>" in page
    assert ">x</th>" not in page
    assert '<a href="../a%20%231/">a</a>' in page


def list_answers(models: list) -> list[Exhibit]:
    rows = [{"model": model.name, "answer": 42} for model in models]
    rows.append({"more": 1.5})
    return [Exhibit("answers", "Answers", "All of them.", rows=rows)]


@pytest.mark.usefixtures("few_pictures")
def test_a_page_with_a_section_of_a_user(tmp_path):
    """Names of levels, which name curves, are not names of files."""
    images = np.random.default_rng(0).random((16, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        images,
        np.array(list(np.ndindex(2, 8))),
        names=["kind", "x"],
        levels=[["a/b", "a_b"], None],
        values=[None, [0, 1, 2, 3, 4, 6, 7, 8]],
    )
    result = tfcomp.evaluate(table.draw, table, region="x:3")
    tfcomp.register_section("mine", title="My part")(list_answers)

    path = result.write_report(tmp_path / "report", ["mine", "runs", "gaps"])

    page = path.read_text("utf-8")
    assert page.index("My part") > page.index("Runs and flags")
    assert 'id="section-own_mine"' in page
    assert "All of them." in page
    answers = path.with_name("own_mine_answers.csv").read_text()
    assert answers.splitlines() == ["model,answer,more", "model,42,", ",,1.5"]
    files = {file.name for file in path.parent.glob("*_gap_images_*.png")}
    assert files == {f"model_gap_images_{i}.png" for i in range(2)}
    # Nothing was written beside the report.
    assert list(tmp_path.iterdir()) == [path.parent]


def fail(models: list) -> list:
    raise ZeroDivisionError("no\nmodels")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fail, "ZeroDivisionError: no models"),
        (lambda models: [1], "got int"),
        (lambda models: None, "TypeError"),
        (lambda models: list_answers(models) * 2, "names"),
        (lambda models: [Exhibit("a/b", "", "")], "/"),
    ],
)
def test_a_section_that_fails_is_left_out(function, words, capsys):
    tfcomp.register_section("mine")(function)
    tfcomp.register_section("fine")(list_answers)

    (section,) = make_user_sections([], ["fine", "mine"])

    assert section.anchor == "own_fine"
    (line,) = capsys.readouterr().err.splitlines()
    assert "'mine' is left out" in line
    assert words in line


def test_mistakes_of_registration():
    tfcomp.register_section("mine")(list_answers)
    tfcomp.register_section("mine", title="Again")(list_answers)

    with pytest.raises(ValueError, match="mine"):
        tfcomp.register_section("mine")(fail)
    with pytest.raises(ValueError, match="letters"):
        tfcomp.register_section("../up")


def test_every_section_has_a_maker():
    assert [*MAKERS] == [name for name in SECTIONS if name != "explorer"]
    assert "umap" not in choose_sections([])
    for names in (["umap", "layers"], "umap,layers"):
        assert choose_sections(names) == ["layers", "umap"]


@pytest.mark.parametrize("is_installed", [True, False])
def test_without_umap_one_line_says_so(is_installed, monkeypatch, capsys):
    """Where it is not installed, or fails."""

    def fail(_: object):
        raise OSError("LLVM ERROR")

    analysis = SimpleNamespace(name="donut", components={})
    analysis.for_pairs = analysis
    monkeypatch.setattr(stage_section, "has_umap", lambda: is_installed)
    monkeypatch.setattr(stage_section, "compute_umaps", fail)

    section = stage_section.make_umap([analysis])

    lines = section.finding + capsys.readouterr().err
    expected = "pip install 'tfcomp[umap]'"
    if is_installed:
        expected = "UMAP of donut is left out: LLVM ERROR"
    assert not section.exhibits
    assert expected in lines


@pytest.mark.usefixtures("few_pictures")
def test_no_results_are_written_into_the_run(smoke_run, tmp_path, monkeypatch):
    """Only the report, and the data of TensorBoard's projector."""
    (events,) = Path(smoke_run.run_dir).glob("*tfevents*")
    names = {*FILES, events.name}
    for name in names:
        shutil.copy(Path(smoke_run.run_dir, name), tmp_path)
    section = Section("manifolds", "", "", [])
    monkeypatch.setitem(MAKERS, "manifolds", lambda _: section)
    command = ["analyze", str(tmp_path), "--sections=manifolds"]

    assert analyze.main(command) == 0

    written = {path.name for path in tmp_path.iterdir()} - names
    assert written == {"analysis", "projector", "projector_config.pbtxt"}
