"""Rows of images, and outlines of regions: what is drawn where."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.figures.looks import get_legend, get_outline
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.map_plots import compute_outline, draw_outline

IMAGES = np.random.default_rng(0).random((3, 4, 5))  # [n, H, W]


def test_rows_from_the_top_down() -> None:
    rows = {
        "truth": IMAGES,
        "0 bumps": IMAGES[..., None] / 2,
        "100 bumps": IMAGES - 1,
    }
    mask = np.zeros((5, 4), bool)
    mask[1:4, 1] = True
    positions = np.array([[0, 2], [4, 0.25], [np.nan, 1]])
    figure = draw_rows(rows, positions, mask, title="OOD")
    panels = np.reshape(figure.axes, (3, 3))
    assert [row[0].get_ylabel() for row in panels] == list(rows)
    for row, stack in zip(panels, rows.values(), strict=True):
        for axes, image in zip(row, stack, strict=True):
            drawn = axes.images[0]
            np.testing.assert_array_equal(
                drawn.get_array(), np.reshape(image, (4, 5))
            )
            assert drawn.origin == "lower"
            assert drawn.get_clim() == (0, 1)
            assert get_outline(axes) == compute_outline(mask)
        assert [len(axes.lines) for axes in row] == [1, 1, 0]
        for axes, position in zip(row[:2], positions, strict=False):
            marker = axes.lines[0]
            np.testing.assert_array_equal(marker.get_xydata(), [position])
            assert marker.get_markerfacecolor() == "none"
    tops = [axes.get_position().y1 for axes in panels[:, 0]]
    assert tops == sorted(tops, reverse=True)
    titles = [axes.get_title() for axes in panels[0]]
    assert titles == ["(0, 2)", "(4, 0.25)", "(\u2013, 1)"]
    assert not any(axes.get_title() for axes in panels[1:].ravel())
    assert figure.get_suptitle() == "OOD"
    assert get_legend(figure) == ["held-out region", "true position"]
    pixels = figure.data.set_index(["row", "image", "y", "x"])["pixel"]
    assert len(pixels) == 3 * IMAGES.size
    assert pixels["0 bumps", 2, 3, 4] == IMAGES[2, 3, 4] / 2


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_three_channels_are_rgb_and_others_side_by_side(channels: int) -> None:
    images = 1.5 * np.stack([IMAGES + c / 4 for c in range(channels)], axis=-1)
    figure = draw_rows({"truth": images})
    assert not figure.legends
    axes = figure.axes[0]
    assert not axes.lines and not axes.collections and axes.get_title() == ""
    drawn = axes.images[0].get_array()
    expected = np.hstack([images[0, ..., c] for c in range(channels)])
    if channels == 3:
        expected = images[0].clip(0, 1)
    np.testing.assert_allclose(drawn, expected)
    assert axes.images[0].origin == "lower"


def test_an_outline_leaves_the_limits() -> None:
    axes = Figure().subplots()
    axes.imshow(np.zeros((4, 4)), origin="lower")
    limits = axes.get_xlim(), axes.get_ylim()
    draw_outline(axes, np.ones((4, 4)), linewidth=3)
    axes.figure.draw_without_rendering()
    assert get_outline(axes) == compute_outline(np.ones((4, 4)))
    assert (axes.get_xlim(), axes.get_ylim()) == limits


@pytest.mark.parametrize("seed", range(20))
def test_outlines_are_as_long_as_the_border(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random(rng.integers(1, 10, 2)) < rng.random()
    inside = set(map(tuple, np.argwhere(mask)))
    sides = ((1, 0), (-1, 0), (0, 1), (0, -1))
    around = [(i + a, j + b) for i, j in inside for a, b in sides]
    segments = compute_outline(mask)
    length = sum(x1 - x0 + y1 - y0 for (x0, y0), (x1, y1) in segments)
    assert length == sum(cell not in inside for cell in around)
    for (x0, y0), (x1, y1) in segments:
        assert (x0 == x1) != (y0 == y1)
        assert {x0 % 1, y0 % 1, x1 % 1, y1 % 1} <= {0.5}
    # Fully merged: no segment begins where another goes on the same line.
    for axis in (0, 1):
        group = [s for s in segments if s[0][axis] == s[1][axis]]
        assert not {s[0] for s in group} & {s[1] for s in group}
