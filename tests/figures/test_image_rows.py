"""Rows of images: what is drawn where."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.figures.looks import get_legend, get_outline, get_titles
from tfcomp.figures.exhibits import fit_width
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.map_plots import compute_outline

IMAGES = np.random.default_rng(0).random((3, 4, 5))  # [n, H, W]


def test_rows_from_the_top_down():
    rows = {
        "truth": IMAGES,
        "0 bumps": IMAGES[..., None] / 2,
    }
    titles = ["a", "b", "c"]
    mask = np.zeros((5, 4), bool)
    mask[1:4, 1] = True
    outline = compute_outline(mask)
    positions = np.array([[0, 2], [4, 0.25], [np.nan, 1]])

    figure = draw_rows(
        rows,
        positions,
        mask,
        title="OOD",
        column_titles=titles,
    )

    panels = np.reshape(figure.axes, (2, 3))
    labels = [axes.get_ylabel() for axes in panels[:, 0]]
    assert labels == list(rows)
    assert get_titles(figure)[:3] == titles
    assert figure.get_suptitle() == "OOD"
    assert get_legend(figure) == ["held-out region", "true position"]
    for row, images in zip(panels, rows.values(), strict=True):
        for axes, image in zip(row, images, strict=True):
            (picture,) = axes.images
            assert_array_equal(picture.get_array(), image.reshape(4, 5))
            assert picture.origin == "lower"
            assert picture.get_clim() == (0, 1)
            assert_array_equal(get_outline(axes), outline)
        marks = [line.get_xydata() for axes in row for line in axes.lines]
        assert_array_equal(np.concatenate(marks), positions[:2])


def test_titles_keep_clear_of_their_neighbors(rng):
    titles = [f"angle {165 + number}.045" for number in range(11)]

    with fit_width("page"):
        figure = draw_rows(
            {"truth": rng.random((11, 4, 4))},
            column_titles=titles,
        )

    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    for box, neighbor in itertools.pairwise(boxes):
        assert box.x1 < neighbor.x0
    assert boxes[-1].x1 < figure.bbox.x1


def test_the_table_has_all_pixels():
    half = IMAGES / 2

    figure = draw_rows(
        {
            "truth": IMAGES,
            "half": half,
        }
    )

    pixels = figure.data.set_index(["row", "image", "y", "x"])["pixel"]
    assert len(pixels) == 2 * IMAGES.size
    assert pixels["half", 2, 3, 4] == half[2, 3, 4]


@pytest.mark.parametrize("channels", [2, 3])
def test_three_channels_are_rgb_and_others_side_by_side(channels):
    images = 1.5 * (IMAGES[..., None] + np.arange(channels) / 4)

    figure = draw_rows({"truth": images})

    (picture,) = figure.axes[0].images
    first = images[0]
    expected = first.clip(0, 1)
    if channels == 2:
        expected = np.hstack([first[..., 0], first[..., 1]])
    assert_allclose(picture.get_array(), expected)
