"""Manifolds and embeddings: points, colors, curves, scales."""

import dataclasses

import numpy as np
import pytest
from matplotlib import colormaps
from numpy.testing import assert_allclose, assert_array_equal

from tests.figures.looks import get_legend, get_titles
from tfcomp.datasets.factors import Factor
from tfcomp.figures.image_rows import draw_manifolds
from tfcomp.figures.map_plots import draw_embeddings, find_limit

POINTS = np.random.default_rng(0).normal(size=(2, 12, 2))
STAGES = {f"stage_{i}": points for i, points in enumerate(POINTS)}
STEPS = np.arange(12.0)
FACTORS = np.stack([STEPS, 30.0 * STEPS[::-1]], axis=1)
IS_OOD = np.isin(STEPS, [4, 5, 6])
X = Factor(
    "x",
    12,
    0.0,
    11.0,
    "px",
)
ANGLE = Factor(
    "angle",
    12,
    0.0,
    360.0,
    "deg",
    periodic=True,
)


def test_a_row_of_panels_per_factor():
    x, angle = FACTORS.T
    of_x = colormaps["viridis"](x / 11)
    of_angle = colormaps["twilight"](angle / 360)

    figure = draw_manifolds(
        STAGES,
        FACTORS,
        IS_OOD,
        space=[X, ANGLE],
    )

    assert get_titles(figure)[:2] == ["stage 0", "stage 1"]
    panels = np.reshape(figure.axes[:4], (2, 2))
    for row, colors in zip(panels, (of_x, of_angle), strict=True):
        for axes, points in zip(row, POINTS, strict=True):
            # Marks without a point are samples for the legend.
            drawn = [m for m in axes.collections if len(m.get_offsets())]
            trained, held_out = drawn
            for marks, rows in ((trained, ~IS_OOD), (held_out, IS_OOD)):
                assert_array_equal(marks.get_offsets(), points[rows])
                assert_allclose(marks.get_facecolor(), colors[rows])
    labels = [axes.get_ylabel() for axes in figure.axes[4:]]
    assert labels == ["x (px)", "angle (deg)"]
    assert get_legend(figure) == ["training region", "held-out region"]


@pytest.mark.parametrize("periodic", [False, True])
def test_one_ordered_factor_has_a_curve(periodic):
    space = [dataclasses.replace(X, periodic=periodic)]

    figure = draw_manifolds(
        STAGES,
        FACTORS[:, :1],
        IS_OOD,
        space=space,
    )

    (curve,) = figure.axes[0].lines
    expected = POINTS[0]
    if periodic:
        expected = np.append(expected, expected[:1], axis=0)
    assert_array_equal(curve.get_xydata(), expected)


def test_matrices_are_tiles_on_one_symmetric_scale(rng):
    matrices = rng.uniform(-3, 1, (5, 4, 6))
    levels = ["0", "0.5", "1", "1.5", "20"]

    figure = draw_embeddings(
        matrices,
        levels,
        factor_label="y (px)",
    )

    axes, *_ = figure.axes
    (picture,) = axes.images
    limit = np.abs(matrices).max()
    labels = [text.get_text() for text in axes.texts]
    assert picture.get_clim() == (-limit, limit)
    assert axes.yaxis_inverted()
    assert labels == levels
    sheet = picture.get_array()
    assert np.ma.count(sheet) == matrices.size
    for number, matrix in enumerate(matrices):
        row, column = divmod(number, 4)  # four in a row
        top = 5 * row + 1
        left = 7 * column
        tile = sheet[top : top + 4, left : left + 6]
        assert_array_equal(tile[::-1], matrix)


def test_outliers_do_not_wash_out_the_rest(rng):
    plain = rng.uniform(-1, 1, (4, 20, 20))
    broken = plain.copy()
    broken[1, 2, 3] = -100
    broken[2] = np.nan
    nothing = np.zeros(3)

    assert find_limit(plain) == np.abs(plain).max()
    assert 0.9 < find_limit(broken) < 1
    assert find_limit(nothing) == 1
