"""Rows of images: what is drawn where."""

import numpy as np
import pytest

from tests.figures.looks import get_legend, get_outline
from tfcomp.figures.cells import compute_outline
from tfcomp.figures.image_rows import draw_rows

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


def test_rows_without_position_or_region() -> None:
    figure = draw_rows({"truth": IMAGES[..., None]})
    assert not figure.legends
    for axes in figure.axes:
        assert not axes.lines and not axes.collections
        assert axes.get_title() == ""


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_three_channels_are_rgb_and_others_side_by_side(channels: int) -> None:
    images = 1.5 * np.stack([IMAGES + c / 4 for c in range(channels)], axis=-1)
    axes = draw_rows({"truth": images}).axes[0]
    drawn = axes.images[0].get_array()
    expected = np.hstack([images[0, ..., c] for c in range(channels)])
    if channels == 3:
        expected = images[0].clip(0, 1)
    np.testing.assert_allclose(drawn, expected)
    assert axes.images[0].origin == "lower"


def test_images_of_a_diverged_model_are_no_shade_of_gray() -> None:
    figure = draw_rows({"truth": IMAGES, "model": IMAGES * np.nan})
    image = figure.axes[-1].images[0]
    assert np.ptp(image.to_rgba(image.get_array())[0, 0, :3]) > 0.1
    assert get_legend(figure) == ["no finite value"]
