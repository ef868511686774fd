"""The frame of all pages, and sections that users register."""

from __future__ import annotations

import html
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import tfcomp
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit, save_exhibit
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

pytestmark = pytest.mark.usefixtures("untraced")

NAMES = ("one", "a name with & and #", "three")
EVIL = "\"'><script>evil()</script><img src=x onerror=evil()>&lt;"


def render(*sections: Section, text: str = "") -> str:
    exhibits = [exhibit for section in sections for exhibit in section.exhibits]
    answer = Answer([text], exhibits)
    return render_page(text, text, answer, sections, Path())


def test_texts_are_escaped():
    exhibit = Exhibit(
        EVIL,
        EVIL,
        EVIL,
        rows=[{EVIL: EVIL}],
    )
    section = Section(
        EVIL,
        EVIL,
        EVIL,
        [exhibit],
        EVIL,
        {EVIL: EVIL},
    )

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
    filled = Section(
        "b",
        "Has numbers",
        "",
        [Exhibit("t", "T", "", rows=rows)],
    )
    empty = Section("a", "Does not apply", "", [])

    page = render(empty, filled)

    assert "Has numbers" in page
    assert "Does not apply" not in page
    assert ">y</th>" in page
    assert ">x</th>" not in page
    assert '<a href="../a%20%231/">a</a>' in page


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of three sections, each with a wide picture and a wide table."""
    folder = tmp_path_factory.mktemp("page")
    table = pd.DataFrame({"line": [0, 1]})
    rows = [{f"a long name of column {i}": 0.5 for i in range(40)}] * 30
    sections = []
    for i, name in enumerate(NAMES):
        figure = draw_curves(
            table,
            xlabel="x",
            ylabel="y",
        )
        figure.set_figwidth(16)
        exhibit = Exhibit(
            name,
            f"Exhibit {name}",
            "Text.",
            figure,
            rows,
        )
        save_exhibit(exhibit, folder)
        section = Section(
            f"s{i}",
            f"Section {i}",
            "Asks.",
            [exhibit],
            f"Finding {i}.",
        )
        sections.append(section)
    answer = Answer(["The first sentence."], [])
    page = render_page(
        "A page",
        "Made now.",
        answer,
        sections,
        folder,
    )
    (folder / "page.html").write_text(page, "utf-8")
    return folder / "page.html"


@pytest.fixture(scope="module")
def opened(open_page: Callable, path: Path) -> Page:
    return open_page(path.as_uri())


@pytest.fixture
def page(opened: Page, path: Path) -> Iterator[Page]:
    """The page as it was opened; nothing may have gone wrong at the end."""
    opened.set_viewport_size({"width": 1280, "height": 600})
    opened.goto("about:blank")
    opened.goto(path.as_uri())
    yield opened
    assert not opened.problems


def list_open(page: Page) -> list[str]:
    return page.evaluate(
        """() => [...document.querySelectorAll("details.part")]
          .filter((part) => part.open).map((part) => part.id)"""
    )


def test_sections_fold_by_mouse_and_by_keys(page):
    finding = page.get_by_text("Finding 1.")
    assert list_open(page) == []
    assert finding.is_visible()

    finding.click()
    assert list_open(page) == ["section-s1"]

    page.locator("#section-s0 > summary").focus()
    page.keyboard.press("Enter")
    assert list_open(page) == ["section-s0", "section-s1"]
    page.keyboard.press("Enter")
    assert list_open(page) == ["section-s1"]

    page.get_by_role("button", name="Unfold all").click()
    assert len(list_open(page)) == 3
    page.get_by_role(
        "button",
        name="Fold all",
        exact=True,
    ).click()
    assert list_open(page) == []


def test_links_unfold_what_they_lead_to(page, path):
    link = page.get_by_role("link", name="Section 2")
    link.click()
    assert list_open(page) == ["section-s2"]

    # The same link once more, although the address stays.
    page.locator("#section-s2 > summary").click()
    link.click()
    assert list_open(page) == ["section-s2"]

    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#figure-one")
    assert list_open(page) == ["section-s0"]
    assert page.locator("#figure-one img").is_visible()


def test_pictures_are_enlarged(page):
    page.get_by_text("Finding 0.").click()
    link = page.locator("#figure-one a.zoom")
    dialog = page.locator("#page-zoom")

    link.focus()
    page.keyboard.press("Enter")

    assert dialog.is_visible()
    small = link.locator("img")
    large = dialog.locator("img")
    assert large.get_attribute("src") == small.get_attribute("src")
    assert large.get_attribute("alt") == small.get_attribute("alt")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()


@pytest.mark.parametrize("width", [1280, 375])
def test_contents_stick_and_nothing_is_cut(page, width):
    page.set_viewport_size({"width": width, "height": 600})
    page.get_by_role("button", name="Unfold all").click()

    page.evaluate("scrollTo(0, 300)")

    box = page.locator("nav").bounding_box()
    assert box["y"] == pytest.approx(0, abs=1)
    page_width = page.evaluate("document.documentElement.scrollWidth")
    assert page_width <= width


def list_answers(models: list) -> list[tfcomp.Exhibit]:
    rows = [{"model": model.name, "answer": 42} for model in models]
    rows.append({"more": 1.5})
    return [
        tfcomp.Exhibit(
            "answers",
            "Answers",
            "All of them.",
            rows=rows,
        )
    ]


@pytest.mark.usefixtures("no_pdf")
def test_a_page_with_a_section_of_a_user(tmp_path):
    """Names of levels, which name curves, are not names of files."""
    images = np.random.default_rng(0).random((24, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        images,
        np.array(list(np.ndindex(3, 8))),
        names=["kind", "x"],
        levels=[["a/b", "a_b", "../c"], None],
        values=[None, [0, 1, 2, 3, 4, 6, 7, 8]],
    )
    result = tfcomp.evaluate(table.draw, table, region="x:3-4")
    register = tfcomp.register_section(
        "mine",
        title="My part",
        text="Is it?",
    )
    register(list_answers)

    path = result.write_report(tmp_path / "report", ["mine", "runs", "gaps"])

    page = path.read_text("utf-8")
    assert page.index("My part") > page.index("Runs and flags")
    assert 'id="section-own_mine"' in page
    assert "All of them." in page
    answers = path.with_name("own_mine_answers.csv").read_text()
    assert answers.splitlines() == ["model,answer,more", "model,42,", ",,1.5"]
    files = {file.name for file in path.parent.glob("*_gap_images_*.png")}
    assert files == {f"model_gap_images_{i}.png" for i in range(3)}
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
        (lambda models: [tfcomp.Exhibit("a/b", "", "")], "/"),
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
    assert choose_sections(["umap", "layers"]) == ["layers", "umap"]
    assert choose_sections("umap,layers") == ["layers", "umap"]
    assert choose_sections("layers") == ["layers"]


@pytest.fixture
def donut() -> SimpleNamespace:
    analysis = SimpleNamespace(
        name="donut",
        components={},
    )
    analysis.for_pairs = analysis
    return analysis


def test_without_umap_one_line_says_so(donut, monkeypatch):
    monkeypatch.setattr(stage_section, "has_umap", lambda: False)

    section = stage_section.make_umap([donut])

    assert not section.exhibits
    assert "pip install 'tfcomp[umap]'" in section.finding


def test_umap_that_fails_is_left_out(donut, monkeypatch, capsys):
    def fail(_: object):
        raise OSError("LLVM ERROR")

    monkeypatch.setattr(stage_section, "has_umap", lambda: True)
    monkeypatch.setattr(stage_section, "compute_umaps", fail)

    assert stage_section.try_umap(donut) == []

    (line,) = capsys.readouterr().err.splitlines()
    assert "donut" in line
    assert "LLVM ERROR" in line
