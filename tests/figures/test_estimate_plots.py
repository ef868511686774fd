"""Estimates over seeds: forest plots, and power laws."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.figures.looks import get_legend
from tfcomp.figures.estimate_plots import (
    ForestRow,
    Scaling,
    draw_forest,
    draw_power_laws,
)
from tfcomp.figures.exhibits import figure_to_png

ROWS = (
    ForestRow("first", 0.8, 0.55, 1.05, (0.7, 0.8, 0.9)),
    ForestRow("single", 0.3, None, None, (0.3,)),
)
SIZES = (16, 24, 32)


def test_panels_share_their_rows() -> None:
    figure = draw_forest({"OOD (px)": ROWS, "ID": ROWS[1:]}, log=["OOD (px)"])
    assert figure_to_png(figure).startswith(b"\x89PNG")
    first, second = figure.axes
    lines = [line.get_xdata() for line in first.get_lines()]
    assert any(np.array_equal(x, (0.7, 0.8, 0.9)) for x in lines)
    assert any(np.array_equal(x, (0.55, 1.05)) for x in lines)
    assert sum(np.array_equal(x, (0.8,)) for x in lines) == 1
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ["first", "single"]
    assert first.get_xlabel() == "OOD (px)"
    assert get_legend(figure) == ["a seed", "mean"]
    assert first.yaxis_inverted()
    assert (first.get_xscale(), second.get_xscale()) == ("log", "linear")
    # The lack of the first row does not move the second one.
    seeds, mean = second.lines  # one seed: no interval
    assert set(seeds.get_ydata()) <= {1 - 0.14}
    assert set(mean.get_ydata()) == {1}


def draw(**changes: object) -> Figure:
    parts = {
        "points": [(n, k * n**2) for n in SIZES for k in (1, 2)],
        "means": [(n, 1.5 * n**2, n**2, 2 * n**2) for n in SIZES],
        "line": (1.5, 2.0),
    }
    guides = {"linear": 1.0, "cubic": 3.0}
    return draw_power_laws({"series": Scaling(**(parts | changes))}, guides)


def test_points_laws_and_guides() -> None:
    axes = draw().axes[0]
    named = {line.get_label(): line.get_xydata() for line in axes.lines}
    for label, exponent in (("linear", 1), ("cubic", 3)):
        slope = np.diff(np.log(named[label]), axis=0)[0]
        assert slope[1] / slope[0] == pytest.approx(exponent)
    data = [line.get_xydata() for line in axes.lines]
    line = [[16, 1.5 * 16**2], [32, 1.5 * 32**2]]
    assert any(len(d) == 2 and np.allclose(d, line) for d in data)
    points = next(d for d in data if len(d) == 6)
    assert sorted(points[:, 1]) == sorted(
        k * n**2 for n in SIZES for k in (1, 2)
    )
    # Repeats stand side by side, at most 1 % from their size.
    assert len(set(points[:, 0])) == 6
    assert np.abs(points[:, 0] / np.repeat(SIZES, 2) - 1).max() < 0.01


def test_long_interval_does_not_hide_the_points() -> None:
    means = [(n, 1.5 * n**2, 1e-9, 1e9) for n in SIZES]
    low, high = draw(means=means).axes[0].get_ylim()
    assert 50 < low < 16**2 and 2 * 32**2 < high < 1e4
