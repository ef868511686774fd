"""The explorer of two factors, of one, and of few combinations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfcomp
from tests.report.test_explorer import read_pixels
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset

Open = Callable[[tfcomp.ModelReport], Any]


@pytest.fixture
def explore(open_page: Callable, tmp_path: Path) -> Open:
    def explore(model: tfcomp.ModelReport) -> Any:
        path = model.explore().write(tmp_path / "page.html")
        page = open_page(path.as_uri())
        assert page.problems == []
        return page

    return explore


def make_bumps(*flags: str) -> tfcomp.ModelReport:
    """The truth of a small donut, drawn one pixel too far to the right."""
    size = ("--grid_size=8", "--region=square:3-5", *flags)
    data = make_dataset(parse_config(["--dataset=gaussian_bumps", *size]))
    return tfcomp.evaluate(
        lambda f: data.render(f + np.float32([1, 0])), data, name="shifted"
    )


def test_bumps_are_upright(explore: Open) -> None:
    """In a picture y goes up, in an array down."""
    model = make_bumps()
    page, drawn = explore(model), model.draw()
    splits = model.dataset.splits
    number = int(np.flatnonzero((splits.grid == [2, 6]).all(axis=1))[0])
    page.evaluate(f"window.tfcomp.select(0, {number})")
    shown = read_pixels(page, "output")[..., 0]
    np.testing.assert_allclose(shown[::-1], drawn[number, ..., 0], atol=1 / 255)
    # x = 3 is the fourth column, y = 6 the second row from above.
    background = model.dataset.ground
    peak = np.abs(shown - background).argmax()
    assert np.unravel_index(peak, (8, 8)) == (1, 3)
    page.focus('canvas[data-role="map"]')
    for key, factors in (
        ("ArrowUp", {"x": 2, "y": 7}),
        ("ArrowRight", {"x": 3, "y": 7}),
        ("ArrowDown", {"x": 3, "y": 6}),
    ):
        page.keyboard.press(key)
        assert page.evaluate("window.tfcomp.selected.factors") == factors


def test_one_factor(explore: Open) -> None:
    images = np.random.default_rng(0).uniform(size=(6, 3, 3)).astype("f4")
    table = tfcomp.FactorTable(images, np.arange(6)[:, None], names=["x"])
    page = explore(tfcomp.evaluate(table.draw, table, "x:2-3"))
    page.evaluate("window.tfcomp.select(0, 5)")
    page.focus('canvas[data-role="map"]')
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("window.tfcomp.selected.combination") == 4
    shown = read_pixels(page, "output")[..., 0]
    np.testing.assert_allclose(shown, images[4], atol=1 / 255)


def test_few_of_many_levels_exist(
    explore: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows as many combinations as fit, and keys find them."""
    monkeypatch.setattr("tfcomp.report.explorer.MAX_EXPLORED", 30)
    rng = np.random.default_rng(0)
    classes = np.unique(rng.integers(0, 12, (40, 3)), axis=0)
    images = (classes / 11).reshape(-1, 1, 3, 1).astype("f4")
    table = tfcomp.FactorTable(images, classes, names=["a", "b", "c"])
    page = explore(
        tfcomp.evaluate(lambda f: f[:, None, :, None] / 11, table, "none")
    )
    count = len(page.evaluate("window.tfcomp.combinations"))
    assert 7 < count <= 30 < len(classes)
    note = page.inner_text('#explorer [data-part="note"]')
    assert f"{count} of {len(classes)}" in note

    page.evaluate("window.tfcomp.select(0, 7)")
    page.focus('canvas[data-role="map"]')
    seen = set()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown") * 2:
        page.keyboard.press(key)
        found = page.evaluate("window.tfcomp.selected")
        seen.add(found["combination"])
        expected = [list(found["factors"].values())]
        pixels = read_pixels(page, "output")[..., 0]
        np.testing.assert_allclose(pixels * 11, expected, atol=11 / 255)
    assert len(seen) > 2
