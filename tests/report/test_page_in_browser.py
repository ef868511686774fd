"""The frame of all pages in a browser: folding, zoom, contents, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit, save_exhibit
from tfcomp.report.page import Answer, Section, render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

NAMES = ("one", "a name with & and #", "three")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of three sections, each with a wide picture and a wide table."""
    folder = tmp_path_factory.mktemp("page")
    exhibits = []
    for name in NAMES:
        figure = draw_curves([0, 1], {name: [0, 1]}, xlabel="x", ylabel="y")
        figure.set_figwidth(16)
        rows = [{f"a long name of column {i}": 0.5 for i in range(40)}] * 30
        exhibits.append(Exhibit(name, f"Exhibit {name}", "Text.", figure, rows))
        save_exhibit(exhibits[-1], folder)
    sections = [
        Section(f"s{i}", f"Section {i}", "Asks.", [item], f"Finding {i}.")
        for i, item in enumerate(exhibits)
    ]
    answer = Answer(["The first sentence."], [])
    page = render_page("A page", "Made now.", answer, sections, folder)
    (folder / "page.html").write_text(page, "utf-8")
    return folder / "page.html"


@pytest.fixture(scope="module")
def opened(open_page: Callable, path: Path) -> Page:
    return open_page(path.as_uri())


@pytest.fixture
def page(opened: Page, path: Path) -> Iterator[Page]:
    """The page as it was opened; nothing may have gone wrong at the end."""
    opened.set_viewport_size({"width": 1280, "height": 600})
    opened.emulate_media(media="screen", color_scheme="light")
    opened.goto("about:blank")
    opened.goto(path.as_uri())
    yield opened
    assert not opened.problems


def list_open(page: Page) -> list[str]:
    return page.evaluate(
        """() => [...document.querySelectorAll("details.part")]
          .filter((part) => part.open).map((part) => part.id)"""
    )


def test_sections_fold_by_mouse_and_by_keys(page: Page) -> None:
    assert list_open(page) == []
    assert page.get_by_text("Finding 1.").is_visible()
    page.get_by_text("Finding 1.").click()
    assert list_open(page) == ["section-s1"]
    page.locator("#section-s0 > summary").focus()
    page.keyboard.press("Enter")
    assert list_open(page) == ["section-s0", "section-s1"]
    page.keyboard.press("Enter")
    assert list_open(page) == ["section-s1"]
    button = page.get_by_role("button", name="Unfold all")
    button.click()
    assert len(list_open(page)) == 3
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert list_open(page) == []


def test_links_unfold_what_they_lead_to(page: Page, path: Path) -> None:
    page.get_by_role("link", name="Section 2").click()
    assert list_open(page) == ["section-s2"]
    page.locator("#section-s2 > summary").click()
    # The same link once more, although the address stays.
    page.get_by_role("link", name="Section 2").click()
    assert list_open(page) == ["section-s2"]
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#figure-one")
    assert list_open(page) == ["section-s0"]
    assert page.locator("#figure-one img").is_visible()


@pytest.mark.parametrize("way", ["mouse", "keys"])
def test_pictures_are_enlarged(page: Page, way: str) -> None:
    page.get_by_text("Finding 0.").click()
    link = page.locator("#figure-one a.zoom")
    if way == "mouse":
        link.click()
    else:
        link.focus()
        page.keyboard.press("Enter")
    dialog = page.locator("#page-zoom")
    assert dialog.is_visible() and page.url.endswith("page.html")
    small, large = link.locator("img"), dialog.locator("img")
    for name in ("src", "alt"):
        assert large.get_attribute(name) == small.get_attribute(name)
    assert "upwards: y" in (large.get_attribute("alt") or "")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()


@pytest.mark.parametrize("width", [1280, 375])
def test_contents_stick_and_nothing_is_cut(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 600})
    page.get_by_role("button", name="Unfold all").click()
    page.evaluate("scrollTo(0, 300)")
    assert page.evaluate("scrollY") == 300
    box = page.locator("nav").bounding_box()
    assert box is not None and abs(box["y"]) < 1
    whole = page.evaluate("document.documentElement.scrollWidth")
    assert whole <= width
