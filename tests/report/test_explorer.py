"""The explorer in a browser: what it shows is what the models draw."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tfcomp
from tfcomp.figures.image_files import write_outputs
from tfcomp.metrics.run_analysis import RunAnalysis

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

EVIL = "</script><script>evil()</script>"
SIZES = (2, 4, 3)
CLASSES = np.stack(np.meshgrid(*map(range, SIZES), indexing="ij"), -1).reshape(
    -1, 3
)
PLANTED = 17  # the combination that one of the models draws differently
CHANGE = (1, 2, 0)  # row, column, channel
IMAGES = np.random.default_rng(0).uniform(0.1, 0.9, (24, 4, 5, 3)).astype("f4")
EARLY = IMAGES[::-1].copy()


def make_model(name: str, images: np.ndarray) -> tfcomp.ModelReport:
    """Colored images of two shapes at four places in three sizes."""
    table = tfcomp.FactorTable(
        IMAGES,
        CLASSES,
        names=["shape", "x", "size"],
        levels=[["disc", EVIL], None, ["S", "M", "L"]],
    )
    drawn = tfcomp.FactorTable(images, CLASSES, names=["shape", "x", "size"])
    return tfcomp.evaluate(drawn.draw, table, "shape:1,x:1-2", name=name)


@pytest.fixture(scope="module")
def models(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tfcomp.ModelReport]:
    changed = IMAGES.copy()
    changed[(PLANTED, *CHANGE)] += 0.1
    right, wrong = make_model("right", IMAGES), make_model("wrong", changed)
    folder = tmp_path_factory.mktemp("run")
    # Eight bits cut outputs to 0..1, but not their errors.
    grid, errors = right.dataset.splits.grid, np.arange(len(EARLY)) + 0.5
    write_outputs(folder, 3, grid, EARLY, errors)
    run = dataclasses.replace(right.run, path=folder)
    right.analysis = RunAnalysis.of_run(run)
    return [right, wrong]


@pytest.fixture(scope="module")
def path(
    models: list[tfcomp.ModelReport], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    right, wrong = models
    return right.explore(wrong).write(
        tmp_path_factory.mktemp("page") / "explorer.html"
    )


@pytest.fixture(scope="module")
def opened(open_page: Callable, path: Path) -> Page:
    page = open_page(path.as_uri())
    page.on("request", lambda request: page.problems.append(request.url[:40]))
    return page


@pytest.fixture
def page(opened: Page) -> Page:
    opened.reload()
    return opened


def read_canvas(page: Page, role: str) -> np.ndarray:
    height, width, pixels = page.evaluate(
        """role => {
          const canvas = document.querySelector(
            `#explorer canvas[data-role="${role}"]`);
          const {width, height} = canvas;
          return [height, width, Array.from(canvas.getContext("2d")
            .getImageData(0, 0, width, height).data)];
        }""",
        role,
    )
    return np.array(pixels).reshape(height, width, 4)


def read_pixels(page: Page, role: str) -> np.ndarray:
    """Pixels of a canvas, [H, W, 3] from 0 to 1."""
    pixels = read_canvas(page, role)
    assert (pixels[..., 3] == 255).all()
    return pixels[..., :3] / 255


def select(page: Page, run: int, combination: int) -> dict[str, Any]:
    return page.evaluate(f"window.tfcomp.select({run}, {combination})")


def selected(page: Page) -> dict[str, Any]:
    return page.evaluate("window.tfcomp.selected")


def find_cell(page: Page, x: int, y: int) -> tuple[float, float]:
    """The middle of a cell of the map, which starts as shape over x."""
    box = page.locator('#explorer canvas[data-role="map"]').bounding_box()
    label = page.locator('canvas[data-role="map"]').get_attribute("aria-label")
    names = re.search("over (.*) and (.*);", label)
    found = page.evaluate("window.tfcomp.combinations")
    nx, ny = (len({c["factors"][n] for c in found}) for n in names.groups())
    # Of cells of 48 px at most, below a margin of 8 and right of one of 62.
    assert box["height"] == 8 + 48 * ny + 84 and box["width"] >= 62 + 48 * nx
    return box["x"] + 62 + 48 * (x + 0.5), box["y"] + 8 + 48 * (ny - y - 0.5)


def hover(page: Page, x: int, y: int) -> dict[str, Any]:
    page.mouse.move(*find_cell(page, x, y))
    return selected(page)


def test_no_error_and_no_request(page: Page, path: Path) -> None:
    page.problems.clear()
    page.reload()
    known = (path.as_uri()[:40], "data:image/png")
    assert [p for p in page.problems if not p.startswith(known)] == []
    assert "http" not in path.read_text().replace("http-equiv", "")


def test_runs_and_combinations(
    page: Page, models: list[tfcomp.ModelReport]
) -> None:
    assert page.evaluate("window.tfcomp.runs") == ["right", "wrong"]
    found = page.evaluate("window.tfcomp.combinations")
    splits = models[0].dataset.splits
    assert [c["ood"] for c in found] == splits.is_ood.tolist()
    assert 0 < splits.is_ood.sum() < 24
    names = models[0].dataset.space.names
    values = [[c["factors"][name] for name in names] for c in found]
    np.testing.assert_array_equal(values, splits.grid)
    assert found[-1]["levels"] == {"shape": EVIL, "x": "3", "size": "L"}
    for run, combination in ((2, 0), (-1, 0), (0, 24), (0, -1), (0, 0.5)):
        with pytest.raises(Exception, match="must be from 0 to"):
            select(page, run, combination)


@pytest.mark.parametrize("run", [0, 1])
def test_pixels_are_those_of_the_models(
    page: Page, models: list[tfcomp.ModelReport], run: int
) -> None:
    drawn = models[run].draw()
    truth = models[run].dataset.render_array(models[run].dataset.splits.grid)
    assert models[run].dataset.first_row == "top"
    np.testing.assert_allclose(truth, IMAGES, atol=1e-6)
    for combination in range(24):
        found = select(page, run, combination)
        assert (found["run"], found["combination"]) == (run, combination)
        for role, images in (("truth", truth), ("output", drawn)):
            error = read_pixels(page, role) - images[combination]
            assert np.abs(error).max() <= 1 / 255
        is_ood = models[run].dataset.splits.is_ood[combination]
        marks = page.inner_text('#explorer [data-part="marks"]')
        assert marks.startswith("Held out; determined" if is_ood else "Trained")


def test_an_output_that_differs_shows_as_different(page: Page) -> None:
    neutral = np.array([0xF7, 0xF7, 0xF7]) / 255
    for run, combination in ((0, PLANTED), (1, 3), (1, PLANTED)):
        select(page, run, combination)
        differs = (read_pixels(page, "difference") != neutral).any(axis=-1)
        assert differs.sum() == int((run, combination) == (1, PLANTED))
        score = page.inner_text(
            '#explorer [data-part="scores"] tr:nth-child(2)'
        )
        assert (score.split("\t")[1 + run] == "0") == (not differs.any())
    assert differs[CHANGE[:2]]
    # The outputs of both stand beside each other.
    assert page.locator("#explorer canvas[data-run]").count() == 2


def test_predictions_follow_their_definitions(
    page: Page, models: list[tfcomp.ModelReport]
) -> None:
    splits = models[0].dataset.splits
    known = ~splits.is_ood
    mean = IMAGES[known].mean(axis=0)
    design = np.hstack([np.eye(n)[CLASSES[:, i]] for i, n in enumerate(SIZES)])
    flat = (IMAGES - mean).reshape(24, -1)
    fit = np.linalg.lstsq(design[known], flat[known], rcond=None)[0]
    for i in np.flatnonzero(splits.is_ood):
        select(page, 0, int(i))
        differing = (CLASSES[known] != CLASSES[i]).sum(axis=1)
        steps = np.abs(CLASSES[known] - CLASSES[i]).sum(axis=1)
        best = np.lexsort((steps, differing))[0]
        means = [
            flat[known & (CLASSES[:, f] == CLASSES[i, f])].mean(axis=0)
            for f in range(3)
        ]
        weights = np.linalg.lstsq(np.stack(means, 1), flat[i], rcond=None)[0]
        expected = {
            "nearest": IMAGES[known][best],
            "additive": mean + (design[i] @ fit).reshape(mean.shape),
            "superposition": mean + (weights @ means).reshape(mean.shape),
        }
        for role, image in expected.items():
            error = read_pixels(page, role) - image.clip(0, 1)
            assert np.abs(error).max() <= 1 / 255, role


def test_hovering_clicking_and_keys(page: Page) -> None:
    first = hover(page, 0, 0)
    before = read_pixels(page, "output")
    second = hover(page, 1, 0)
    assert first["combination"] != second["combination"]
    assert (read_pixels(page, "output") != before).any()
    page.mouse.click(*find_cell(page, 1, 1))
    clicked = selected(page)["combination"]
    hover(page, 0, 0)
    page.mouse.move(1, 1)  # off the map, which returns to what was clicked
    assert selected(page)["combination"] == clicked
    page.keyboard.press("ArrowLeft")
    assert selected(page)["combination"] == hover(page, 0, 1)["combination"]
    page.keyboard.press("ArrowLeft")  # to the border, where it stays
    page.keyboard.press("ArrowDown")
    assert selected(page)["combination"] == first["combination"]


@pytest.mark.parametrize(
    ("names", "down"), [("xy", True), ("yx", True), ("xy", False)]
)
def test_maps_have_y_where_images_have_it(
    open_page: Callable, tmp_path: Path, names: str, down: bool
) -> None:
    places = np.array(list(np.ndindex(4, 4)))
    x, y = (places[:, names.index(name)] for name in "xy")
    images = np.zeros((16, 6, 6))
    images[np.arange(16), 1 + y if down else 4 - y, 1 + x] = 1  # a dot
    table = tfcomp.FactorTable(images, places, names=[*names])
    model = tfcomp.evaluate(table.draw, table, "x:2-3,y:2-3")
    page = open_page(model.explore().write(tmp_path / "dots.html").as_uri())
    for column, row in np.ndindex(4, 4):
        found = hover(page, column, 3 - row)  # the map counts from below
        y = row if down else 3 - row
        assert found["factors"] == {"x": column, "y": y}
        dot = read_pixels(page, "truth")[..., 0].argmax()
        assert divmod(dot, 6) == (1 + row, 1 + column)
    page.close()
    axes = model.plot_error().axes[0]
    assert axes.get_ylabel() == names[1]
    assert axes.yaxis_inverted() == (down and names == "xy")


def test_further_factors_runs_and_epochs(
    page: Page,
) -> None:
    select(page, 0, 0)
    sliders = page.locator("#explorer input[type=range]")
    assert sliders.count() == 2
    sliders.nth(0).focus()
    page.keyboard.press("End")
    first = page.evaluate("window.tfcomp.combinations[0].factors")
    changed = selected(page)["factors"].items() - first.items()
    assert len(changed) == 1
    select(page, 0, 5)
    sliders.nth(1).focus()
    page.keyboard.press("Home")
    assert selected(page)["epoch"] == 3
    np.testing.assert_allclose(
        read_pixels(page, "output"), EARLY[5], atol=1 / 255
    )
    # The row of the error has the number of this picture, not the trained one.
    cells = page.locator('#explorer [data-part="scores"] tr').nth(1)
    assert float(cells.locator("td").first.inner_text()) == 5.5
    page.keyboard.press("End")
    assert selected(page)["epoch"] is None
    page.locator("#explorer select").first.select_option("wrong")
    assert selected(page)["run"] == 1
    assert selected(page)["combination"] == 5
    assert sliders.count() == 1  # this run kept nothing


def test_a_line_draws_the_images_along_it(page: Page) -> None:
    strip = page.locator('#explorer [data-part="line"]')
    assert not strip.is_visible()
    hover(page, 0, 0)
    page.mouse.down()
    page.mouse.move(*find_cell(page, 1, 0))
    page.mouse.up()
    last = selected(page)["combination"]
    assert strip.is_visible()
    pixels = read_canvas(page, "line")
    assert pixels.shape == (2 * 4 + 3, 2 * 6 + 1, 4)
    np.testing.assert_allclose(
        pixels[1:5, 7:12, :3] / 255, IMAGES[last], atol=1 / 255
    )
    assert strip.locator(".ticks span").count() == 2
    # A frame marks what is held out.
    is_framed = (pixels[0, 9] == [255, 0, 255, 255]).all()
    assert is_framed == selected(page)["ood"]
    page.keyboard.press("Escape")
    assert not strip.is_visible()
    page.mouse.click(*find_cell(page, 0, 0))
    page.keyboard.press("Shift+ArrowUp")
    assert read_canvas(page, "line").shape[1] == 2 * 6 + 1


def test_in_a_notebook(
    browser: Any, models: list[tfcomp.ModelReport], tmp_path: Path
) -> None:
    """A cell shows it as a frame of its own, of whatever is in its names."""
    cell = tmp_path / "cell.html"
    cell.write_text(f"<body>{models[0].explore()._repr_html_()}</body>")
    page = browser.new_page()
    page.goto(cell.as_uri())
    frame = page.frames[1]
    frame.wait_for_load_state()
    assert frame.evaluate("window.tfcomp.runs") == ["right"]
    frame.evaluate("window.tfcomp.select(0, 3)")
    np.testing.assert_allclose(
        read_pixels(frame, "output"), IMAGES[3], atol=1 / 255
    )
    page.close()
