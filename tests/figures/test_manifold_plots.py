"""Figures of manifolds: points, colors, and the marked gap."""

import dataclasses

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.collections import LineCollection, PathCollection

from tests.figures.looks import get_legend
from tfcomp.datasets.factors import Factor
from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.manifold_plots import draw_manifolds

INDEX = np.arange(12.0)
POINTS = np.random.default_rng(0).normal(size=(3, 12, 2))
EMBEDDINGS = {f"stage_{i}": points for i, points in enumerate(POINTS)}
FACTORS = np.stack([INDEX, 30 * INDEX[::-1]], axis=1)
IS_OOD = np.isin(INDEX, [4, 5, 6])
NAMES = ["x (px)", "angle (deg)"]
X = Factor("x", 12, 0.0, 11.0, "px")
ANGLE = Factor("angle", 12, 0.0, 360.0, "deg", periodic=True)
LABELS = {"space": [X, ANGLE]}
ONE_LABEL = {"space": [X]}


def test_a_row_of_panels_per_factor() -> None:
    figure = draw_manifolds(EMBEDDINGS, FACTORS, IS_OOD, **LABELS)
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
    bars = figure.axes[6:]
    assert [axes.get_ylabel() for axes in bars] == NAMES
    assert get_legend(figure) == ["training region", "held-out region"]


def test_dead_stages_say_so() -> None:
    embeddings = {**EMBEDDINGS, "dead": np.full((12, 2), np.nan)}
    for figure in (
        draw_manifolds(embeddings, FACTORS, IS_OOD, **LABELS),
        draw_manifolds(embeddings, FACTORS[:, :1], IS_OOD, **ONE_LABEL),
    ):
        texts = [a.get_xlabel() for a in figure.axes[:4]]
        assert texts == ["", "", "", "no variance"]
        assert figure_to_png(figure)


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
