"""Manifolds and embeddings: points, colors, the gap, scales, spectra."""

import dataclasses

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.collections import LineCollection, PathCollection

from tests.figures.looks import get_image_axes, get_legend
from tfcomp.datasets.factors import Factor
from tfcomp.figures.embedding_plots import draw_embeddings, draw_spectrum
from tfcomp.figures.image_rows import draw_manifolds

INDEX = np.arange(12.0)
POINTS = np.random.default_rng(0).normal(size=(3, 12, 2))
EMBEDDINGS = {f"stage_{i}": points for i, points in enumerate(POINTS)}
FACTORS = np.stack([INDEX, 30 * INDEX[::-1]], axis=1)
IS_OOD = np.isin(INDEX, [4, 5, 6])
X = Factor("x", 12, 0.0, 11.0, "px")
ANGLE = Factor("angle", 12, 0.0, 360.0, "deg", periodic=True)


def test_a_row_of_panels_per_factor() -> None:
    figure = draw_manifolds(EMBEDDINGS, FACTORS, IS_OOD, space=[X, ANGLE])
    panels = np.reshape(figure.axes[:6], (2, 3))
    assert [axes.get_title() for axes in panels[0]] == list(EMBEDDINGS)
    for row, factor, cmap in zip(
        panels, FACTORS.T, ("viridis", "twilight"), strict=True
    ):
        for axes, points in zip(row, POINTS, strict=True):
            drawn = [c for c in axes.collections if len(c.get_offsets())]
            for scatter, rows in zip(drawn, (~IS_OOD, IS_OOD), strict=True):
                np.testing.assert_array_equal(
                    scatter.get_offsets(), points[rows]
                )
                period = factor.max() + (30 if cmap == "twilight" else 0)
                expected = colormaps[cmap](factor[rows] / period)
                np.testing.assert_allclose(scatter.get_facecolor(), expected)
    labels = [axes.get_ylabel() for axes in figure.axes[6:]]
    assert labels == ["x (px)", "angle (deg)"]
    assert get_legend(figure) == ["training region", "held-out region"]


@pytest.mark.parametrize("periodic", [False, True])
def test_curves_connect_neighbours_and_mark_the_gap(periodic: bool) -> None:
    space = [dataclasses.replace(X, periodic=periodic)]
    figure = draw_manifolds(EMBEDDINGS, FACTORS[:, :1], IS_OOD, space=space)
    for axes, points in zip(figure.axes, POINTS, strict=False):
        gap, curve = (
            c for c in axes.collections if isinstance(c, LineCollection)
        )
        steps = list(zip(points, np.roll(points, -1, axis=0), strict=True))
        expected = steps if periodic else steps[:-1]
        np.testing.assert_array_equal(curve.get_segments(), expected)
        # From the last point before the gap to the first one after it.
        np.testing.assert_array_equal(gap.get_segments(), steps[3:7])
        (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
        np.testing.assert_array_equal(dots.get_offsets(), points)
        low, high = axes.get_xlim()
        assert low < points[:, 0].min() and points[:, 0].max() < high
    assert get_legend(figure) == ["held-out region"]
    assert figure.axes[-1].get_ylabel() == "x (px)"


def test_matrices_share_one_symmetric_scale(rng: np.random.Generator) -> None:
    matrices = rng.uniform(-3, 1, (5, 4, 6))
    levels = ["0", "0.5", "1", "1.5", "20"]
    named = {"factor_label": "y (px)", "title": "embedding of y"}
    figure = draw_embeddings(matrices, levels, **named)
    panels = get_image_axes(figure)
    limit = np.abs(matrices).max()
    for axes, matrix in zip(panels, matrices, strict=True):
        image = axes.images[0]
        np.testing.assert_array_equal(image.get_array(), matrix)
        assert image.origin == "lower" and not axes.yaxis_inverted()
        assert image.get_clim() == (-limit, limit)
        white = image.cmap(0.5)[:3]  # of 0
        np.testing.assert_allclose(white, np.ones(3), atol=0.05)
    assert [axes.get_title() for axes in panels] == levels
    assert len(figure.axes) == len(panels) + 1  # one color bar
    assert figure.get_suptitle() == "embedding of y"
    assert figure.get_supxlabel() == "one matrix per value of y (px)"


def test_outliers_do_not_bleach_and_broken_numbers_are_gray(
    rng: np.random.Generator,
) -> None:
    matrices = rng.uniform(-1, 1, (4, 20, 20))
    matrices[1, 2, 3], matrices[2] = -100, np.nan
    figure = draw_embeddings(matrices, [*"abcd"], factor_label="y (px)")
    images = [axes.images[0] for axes in get_image_axes(figure)]
    assert 0.9 < images[0].get_clim()[1] < 1
    assert images[-1].colorbar.extend == "both"
    red, green, blue, _ = images[2].to_rgba(images[2].get_array())[0, 0]
    assert red == green == blue and 0.3 < red < 0.8
    assert "gray: no finite value" in figure.get_supxlabel()


def test_spectrum_is_relative_to_the_largest() -> None:
    values = np.array([[4.0, 2.0, 0.4], [1.0, 10.0, 0.0], [1.0, 0.1, 0.01]])
    figure = draw_spectrum(values, [1, 2, 1.5], title="embedding of x")
    (axes,) = figure.axes
    *lines, median = axes.lines
    expected = [[1, 0.5, 0.1], [1, 0.1, 0], [1, 0.1, 0.01]]
    for line, numbers in zip(lines, expected, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
        np.testing.assert_allclose(line.get_ydata(), numbers)
    np.testing.assert_allclose(median.get_ydata(), [1, 0.1, 0.01])
    # A matrix of zeros has no line, and the others keep their numbers.
    values[1] = 0
    found = draw_spectrum(values, [1, 0, 1.5]).data.set_index("matrix")["share"]
    assert found[2].tolist() == expected[2] and 1 not in found
