"""Manifolds and embeddings: points, colors, curves, scales."""

import dataclasses

import numpy as np
import pytest
from matplotlib import colormaps

from tests.figures.looks import get_legend
from tfcomp.datasets.factors import Factor
from tfcomp.figures.image_rows import draw_manifolds
from tfcomp.figures.map_plots import draw_embeddings, find_limit

POINTS = np.random.default_rng(0).normal(size=(3, 12, 2))
STAGES = {f"stage_{i}": points for i, points in enumerate(POINTS)}
FACTORS = np.stack([np.arange(12.0), 30.0 * np.arange(12)[::-1]], axis=1)
IS_OOD = np.isin(np.arange(12), [4, 5, 6])
X = Factor("x", 12, 0.0, 11.0, "px")
ANGLE = Factor("angle", 12, 0.0, 360.0, "deg", periodic=True)


def test_a_row_of_panels_per_factor() -> None:
    figure = draw_manifolds(STAGES, FACTORS, IS_OOD, space=[X, ANGLE])
    panels = np.reshape(figure.axes[:6], (2, 3))
    assert [axes.get_title() for axes in panels[0]] == list(STAGES)
    shades = [
        colormaps["viridis"](FACTORS[:, 0] / 11),
        colormaps["twilight"](FACTORS[:, 1] / 360),
    ]
    for row, colors in zip(panels, shades, strict=True):
        for axes, points in zip(row, POINTS, strict=True):
            known, held_out = axes.collections
            for scatter, is_drawn in ((known, ~IS_OOD), (held_out, IS_OOD)):
                places = scatter.get_offsets()
                np.testing.assert_array_equal(places, points[is_drawn])
                np.testing.assert_allclose(
                    scatter.get_facecolor(), colors[is_drawn]
                )
    labels = [axes.get_ylabel() for axes in figure.axes[6:]]
    assert labels == ["x (px)", "angle (deg)"]
    assert get_legend(figure) == ["training region", "held-out region"]


@pytest.mark.parametrize("periodic", [False, True])
def test_one_ordered_factor_has_a_curve(periodic: bool) -> None:
    space = [dataclasses.replace(X, periodic=periodic)]
    figure = draw_manifolds(STAGES, FACTORS[:, :1], IS_OOD, space=space)
    for axes, points in zip(figure.axes, POINTS, strict=False):
        (curve,) = axes.lines
        expected = points
        if periodic:
            expected = np.concatenate([points, points[:1]])
        np.testing.assert_array_equal(curve.get_xydata(), expected)


def test_matrices_are_tiles_on_one_symmetric_scale(
    rng: np.random.Generator,
) -> None:
    matrices = rng.uniform(-3, 1, (5, 4, 6))
    levels = ["0", "0.5", "1", "1.5", "20"]
    figure = draw_embeddings(matrices, levels, factor_label="y (px)")
    axes = figure.axes[0]
    (image,) = axes.images
    limit = np.abs(matrices).max()
    assert image.get_clim() == (-limit, limit)
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in axes.texts] == levels
    sheet = image.get_array()
    for number, matrix in enumerate(matrices):  # four in a row
        row, column = divmod(number, 4)
        tile = sheet[5 * row + 1 :, 7 * column :][:4, :6]
        np.testing.assert_array_equal(tile[::-1], matrix)
    assert np.ma.count(sheet) == matrices.size


def test_outliers_do_not_wash_out_the_rest(rng: np.random.Generator) -> None:
    numbers = rng.uniform(-1, 1, (4, 20, 20))
    assert find_limit(numbers) == np.abs(numbers).max()
    numbers[1, 2, 3] = -100
    numbers[2] = np.nan
    assert 0.9 < find_limit(numbers) < 1
    assert find_limit(np.zeros(3)) == 1
