"""Pages in a browser: the explorer shows what models draw, sections fold."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import tfcomp
from tfcomp.datasets.views import from_contrast
from tfcomp.figures.exhibits import Exhibit, save_exhibit
from tfcomp.figures.image_files import write_outputs
from tfcomp.metrics.references import predict_references
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.superposition import superpose
from tfcomp.report.page import Answer, Section, render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from tfcomp import ModelReport

pytestmark = pytest.mark.usefixtures("untraced")

EVIL = "</script><script>evil()</script>"
NAMES = ["shape", "x", "size"]
CLASSES = np.array(list(np.ndindex(2, 4, 3)))
IMAGES = np.random.default_rng(0).uniform(0.1, 0.9, (24, 4, 5, 3)).astype("f4")
EARLY = IMAGES[::-1].copy()
PLANTED = 17  # the combination that one of the models draws differently
CHANGE = (1, 2, 0)  # row, column, channel
STEP = 1 / 255
NEUTRAL = 0xF7 / 255  # no difference
CELL = 48  # the side of a cell of the map in pixels
LEFT = 62
BELOW = 84


def make_model(
    name: str,
    images: np.ndarray = IMAGES,
    region: str = "shape:1,x:1-2",
) -> ModelReport:
    """Colored images of two shapes at four places in three sizes."""
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        names=NAMES,
        levels=[["disc", EVIL], None, ["S", "M", "L"]],
    )
    decoder = tfcomp.FactorTable(images, CLASSES, names=NAMES)
    return tfcomp.evaluate(
        decoder.draw,
        table,
        region,
        name=name,
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[ModelReport]:
    right = make_model("right")
    changed = IMAGES.copy()
    changed[(PLANTED, *CHANGE)] += 0.1
    folder = tmp_path_factory.mktemp("run")
    # Eight bits cut outputs to 0..1, but not their errors.
    errors = np.arange(24) + 0.5
    write_outputs(
        folder,
        3,
        right.dataset.splits.grid,
        EARLY,
        errors,
    )
    run = dataclasses.replace(right.run, path=folder)
    right.analysis = RunAnalysis.of_run(run)
    return [right, make_model("wrong", changed)]


@pytest.fixture(scope="module")
def path(
    models: list[ModelReport],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    right, wrong = models
    folder = tmp_path_factory.mktemp("page")
    return right.explore(wrong).write(folder / "explorer.html")


@pytest.fixture(scope="module")
def opened(open_page: Callable, path: Path) -> Page:
    """The page, for the tests before another one is opened."""
    return open_page(path.as_uri())


@pytest.fixture
def page(open_page: Callable, path: Path) -> Page:
    return open_page(path.as_uri())


def read_pixels(page: Page, role: str) -> np.ndarray:
    """Pixels of a canvas, [H, W, 3] from 0 to 1."""
    height, width, pixels = page.evaluate(
        """role => {
          const selector = role.startsWith(".") ? role
            : `canvas[data-role="${role}"]`;
          const canvas = document.querySelector(`#explorer ${selector}`);
          const {width, height} = canvas;
          return [height, width, Array.from(canvas.getContext("2d")
            .getImageData(0, 0, width, height).data)];
        }""",
        role,
    )
    return np.reshape(pixels, (height, width, 4))[..., :3] / 255


def select(page: Page, run: int, combination: int) -> dict[str, Any]:
    call = f"window.tfcomp.select({run}, {combination})"
    return page.evaluate(call)


def selected(page: Page) -> dict[str, Any]:
    return page.evaluate("window.tfcomp.selected")


def get_combination(page: Page) -> int:
    return selected(page)["combination"]


def list_combinations(page: Page) -> list[dict[str, Any]]:
    return page.evaluate("window.tfcomp.combinations")


def find_cell(page: Page, column: int, row: int) -> tuple[float, float]:
    """The middle of a cell of the map, counted from the lower left."""
    canvas = page.locator('#explorer canvas[data-role="map"]')
    box = canvas.bounding_box()
    bottom = box["y"] + box["height"]
    x = box["x"] + LEFT + CELL * (column + 0.5)
    y = bottom - BELOW - CELL * (row + 0.5)
    return x, y


def hover(page: Page, column: int, row: int) -> dict[str, Any]:
    x, y = find_cell(page, column, row)
    page.mouse.move(x, y)
    return selected(page)


def click(page: Page, column: int, row: int):
    x, y = find_cell(page, column, row)
    page.mouse.click(x, y)


def test_no_error_and_no_request(page, path):
    requests = []
    page.on("request", lambda request: requests.append(request.url[:40]))

    page.reload()

    assert page.problems == []
    own = path.as_uri()[:40]
    for address in requests:
        assert address.startswith((own, "data:image/png"))
    text = path.read_text().replace("http-equiv", "")
    assert "http" not in text


def test_runs_and_combinations(opened, models):
    splits = models[0].dataset.splits

    combinations = list_combinations(opened)

    assert opened.evaluate("window.tfcomp.runs") == ["right", "wrong"]
    classes = [[*each["factors"].values()] for each in combinations]
    is_ood = [each["ood"] for each in combinations]
    assert_array_equal(classes, CLASSES)
    assert_array_equal(is_ood, splits.is_ood)
    levels = {"shape": EVIL, "x": "3", "size": "L"}
    assert combinations[-1]["levels"] == levels


def test_pixels_are_those_of_the_models(opened, models):
    splits = models[0].dataset.splits
    references = predict_references(models[0].dataset)
    bright = models[0].analysis.bright_outputs
    superposed, _ = superpose(CLASSES, bright, splits.is_ood)
    pictures = {
        "truth": IMAGES,
        "output": models[0].draw(),
        "nearest": references["nearest_id"],
        "additive": references["additive"],
        "superposition": from_contrast(models[0].dataset, superposed),
    }

    for combination in np.flatnonzero(splits.is_ood):
        select(opened, 0, combination)

        for role, images in pictures.items():
            expected = images[combination].clip(0, 1)
            assert_allclose(read_pixels(opened, role), expected, atol=STEP)
        marks = opened.inner_text('#explorer [data-part="marks"]')
        assert marks.startswith("Held out")


def test_an_output_that_differs_shows_as_different(opened):
    row, column, _ = CHANGE
    for run, combination in ((0, PLANTED), (1, 3), (1, PLANTED)):
        is_planted = (run, combination) == (1, PLANTED)
        expected = np.zeros((4, 5), bool)
        expected[row, column] = is_planted

        select(opened, run, combination)

        difference = read_pixels(opened, "difference")
        differs = (difference != NEUTRAL).any(axis=-1)
        errors = opened.locator('#explorer [data-part="scores"] tr').nth(1)
        cells = errors.inner_text().split("\t")
        assert_array_equal(differs, expected)
        assert (cells[1 + run] != "0") == is_planted
        # The outputs of both runs stand beside each other.
        assert opened.locator("#explorer canvas[data-run]").count() == 2


def test_hovering_clicking_and_keys(page):
    first = hover(page, 0, 0)["combination"]
    output = read_pixels(page, "output")
    second = hover(page, 1, 0)["combination"]
    assert first != second
    assert (read_pixels(page, "output") != output).any()

    click(page, 1, 1)
    clicked = get_combination(page)
    hover(page, 0, 0)
    page.mouse.move(1, 1)  # off the map, which returns to what was clicked
    assert get_combination(page) == clicked

    page.keyboard.press("ArrowLeft")
    reached = get_combination(page)
    assert reached == hover(page, 0, 1)["combination"]
    page.keyboard.press("ArrowLeft")  # to the border, where it stays
    page.keyboard.press("ArrowDown")
    assert get_combination(page) == first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert get_combination(page) == clicked


@pytest.fixture
def explore(open_page: Callable, tmp_path: Path) -> Callable:
    def explore(model: ModelReport) -> Any:
        path = model.explore().write(tmp_path / "page.html")
        page = open_page(path.as_uri())
        assert page.problems == []
        return page

    return explore


@pytest.mark.parametrize(("names", "down"), [("xy", True), ("yx", False)])
def test_maps_have_y_where_images_have_it(explore, names, down):
    """Images of a dot at one of 3 x 3 places."""
    places = np.array(list(np.ndindex(3, 3)))
    rows, columns = 1 + places[:, [names.index("y"), names.index("x")]].T
    if not down:
        rows = 4 - rows
    images = np.zeros((9, 5, 5))
    images[np.arange(9), rows, columns] = 1
    table = tfcomp.FactorTable(images, places, names=list(names))
    model = tfcomp.evaluate(table.draw, table, "x:2,y:2")

    page = explore(model)

    for column, row in np.ndindex(3, 3):
        factors = hover(page, column, 2 - row)["factors"]
        y = row if down else 2 - row
        assert factors == {"x": column, "y": y}
        dot = read_pixels(page, "truth")[..., 0].argmax()
        assert divmod(dot, 5) == (1 + row, 1 + column)
    axes = model.plot_error().axes[0]
    assert axes.get_ylabel() == names[1]
    assert axes.yaxis_inverted() == down


def test_further_factors_runs_and_epochs(page):
    first = select(page, 0, 0)
    sliders = page.locator("#explorer input[type=range]")
    assert sliders.count() == 2
    sliders.nth(0).focus()
    page.keyboard.press("End")
    factors = selected(page)["factors"]
    assert len(factors.items() - first["factors"].items()) == 1

    select(page, 0, 5)
    sliders.nth(1).focus()
    page.keyboard.press("Home")
    assert selected(page)["epoch"] == 3
    assert_allclose(read_pixels(page, "output"), EARLY[5], atol=STEP)
    # The row of the error has the number of this picture, not the trained one.
    errors = page.locator('#explorer [data-part="scores"] tr').nth(1)
    assert float(errors.locator("td").first.inner_text()) == 5.5
    page.keyboard.press("End")
    assert selected(page)["epoch"] is None

    page.locator("#explorer select").first.select_option("wrong")
    assert selected(page)["run"] == 1
    assert selected(page)["combination"] == 5
    assert sliders.count() == 1  # this run kept nothing


def test_a_line_draws_the_images_along_it(page):
    strip = page.locator('#explorer [data-part="line"]')
    assert not strip.is_visible()

    hover(page, 0, 0)
    page.mouse.down()
    last = hover(page, 1, 0)
    page.mouse.up()

    # Truth above output, twice.
    assert strip.locator(".film canvas").count() == 4
    pixels = read_pixels(page, ".film div:last-child canvas")
    assert_allclose(pixels, IMAGES[last["combination"]], atol=STEP)

    page.keyboard.press("Escape")
    assert not strip.is_visible()
    click(page, 0, 0)
    page.keyboard.press("Shift+ArrowUp")
    assert strip.is_visible()


def test_in_a_notebook(open_page, models, tmp_path):
    """A cell shows it as a frame of its own, of whatever is in its names."""
    cell = tmp_path / "cell.html"
    cell.write_text(f"<body>{models[0].explore()._repr_html_()}</body>")

    page = open_page(cell.as_uri())
    frame = page.frames[1]
    frame.wait_for_load_state()

    assert frame.evaluate("window.tfcomp.runs") == ["right"]
    select(frame, 0, 3)
    assert_allclose(read_pixels(frame, "output"), IMAGES[3], atol=STEP)


# Other data: one factor, and few of many combinations


def test_one_factor(explore):
    images = IMAGES[:6, :3, :3, 0]
    classes = np.arange(6)[:, None]
    table = tfcomp.FactorTable(images, classes, names=["x"])
    model = tfcomp.evaluate(table.draw, table, "x:2-3")

    page = explore(model)
    select(page, 0, 5)
    page.focus('canvas[data-role="map"]')
    page.keyboard.press("ArrowLeft")

    assert get_combination(page) == 4
    output = read_pixels(page, "output")[..., 0]
    assert_allclose(output, images[4], atol=STEP)


def test_few_of_many_levels_exist(explore, monkeypatch):
    """The page shows as many combinations as fit, and keys find them."""
    monkeypatch.setattr("tfcomp.report.explorer.MAX_EXPLORED", 30)
    rng = np.random.default_rng(0)
    classes = np.unique(rng.integers(0, 12, (40, 3)), axis=0)
    images = (classes / 11).reshape(-1, 1, 3, 1).astype("f4")
    table = tfcomp.FactorTable(images, classes, names=list("abc"))
    model = tfcomp.evaluate(
        lambda factors: factors[:, None, :, None] / 11,  # also of others
        table,
        "none",
    )

    page = explore(model)

    count = len(list_combinations(page))
    assert 7 < count <= 30
    note = page.inner_text('#explorer [data-part="note"]')
    assert f"{count} of {len(classes)}" in note
    select(page, 0, 7)
    page.focus('canvas[data-role="map"]')
    visited = set()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown") * 2:
        page.keyboard.press(key)
        visited.add(selected(page)["combination"])
        factors = list(selected(page)["factors"].values())
        pixels = read_pixels(page, "output")[..., 0]
        assert_allclose(pixels * 11, [factors], atol=11 * STEP)
    assert len(visited) > 2


# The frame of all pages

EXHIBITS = ("one", "a name with & and #")


@pytest.fixture(scope="module")
def report_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two sections, each with a wide picture and a wide table."""
    folder = tmp_path_factory.mktemp("page")
    rows = [{f"a long name of column {i}": 0.5 for i in range(40)}] * 30
    figure = Figure(figsize=(16, 3))
    parts = []
    for i, name in enumerate(EXHIBITS):
        exhibit = Exhibit(name, f"Exhibit {name}", "Text.", figure, rows)
        save_exhibit(exhibit, folder)
        section = Section(
            f"s{i}",
            f"Section {i}",
            "Asks.",
            [exhibit],
            f"Finding {i}.",
        )
        parts.append(section)
    answer = Answer(["The first sentence."], [])
    page = render_page("A page", "Made now.", answer, parts, folder)
    (folder / "page.html").write_text(page, "utf-8")
    return folder / "page.html"


@pytest.fixture
def report(
    window: Page,
    open_page: Callable,
    report_path: Path,
) -> Iterator[Page]:
    """The page as it was opened; nothing may have gone wrong at the end."""
    window.set_viewport_size({"width": 1280, "height": 600})
    yield open_page(report_path.as_uri())
    assert not window.problems


def list_open(page: Page) -> list[str]:
    return page.evaluate(
        """() => [...document.querySelectorAll("details.part")]
          .filter((part) => part.open).map((part) => part.id)"""
    )


def test_sections_fold_by_mouse_and_by_keys(report):
    assert list_open(report) == []

    report.get_by_text("Finding 1.").click()
    assert list_open(report) == ["section-s1"]

    report.locator("#section-s1 > summary").focus()
    report.keyboard.press("Enter")
    assert list_open(report) == []

    button = report.locator("#page-unfold")
    button.click()
    assert list_open(report) == ["section-s0", "section-s1"]
    button.click()
    assert list_open(report) == []


def test_links_unfold_what_they_lead_to(report, report_path):
    link = report.get_by_role("link", name="Section 1")
    link.click()
    assert list_open(report) == ["section-s1"]

    # The same link once more, although the address stays.
    report.locator("#section-s1 > summary").click()
    link.click()
    assert list_open(report) == ["section-s1"]

    report.goto("about:blank")
    report.goto(f"{report_path.as_uri()}#figure-one")
    assert list_open(report) == ["section-s0"]
    assert report.locator("#figure-one img").is_visible()


def test_pictures_are_enlarged(report):
    report.get_by_text("Finding 0.").click()
    link = report.locator("#figure-one a.zoom")
    dialog = report.locator("#page-zoom")

    link.focus()
    report.keyboard.press("Enter")

    assert dialog.is_visible()
    small = link.locator("img").get_attribute("src")
    assert dialog.locator("img").get_attribute("src") == small
    report.keyboard.press("Escape")
    assert not dialog.is_visible()


@pytest.mark.parametrize("width", [1280, 375])
def test_contents_stick_and_nothing_is_cut(report, width):
    report.set_viewport_size({"width": width, "height": 600})
    report.get_by_role("button", name="Unfold all").click()

    report.evaluate("scrollTo(0, 300)")

    box = report.locator("nav").bounding_box()
    assert box["y"] == pytest.approx(0, abs=1)
    page_width = report.evaluate("document.documentElement.scrollWidth")
    assert page_width <= width
