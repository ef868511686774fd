"""Forest plots: seeds, means, intervals, rules and shared rows."""

import numpy as np
import pytest

from tests.figures.looks import get_legend
from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.forest_plots import (
    KIND_COLORS,
    ForestPanel,
    ForestRow,
    draw_forest,
)

ROWS = (
    ForestRow("first", 0.8, 0.55, 1.05, (0.7, 0.8, 0.9), "reproduced"),
    ForestRow("single", 0.3, None, None, (0.3,), "undecided"),
)


def draw_bounds(bounds: tuple[float, float], outside: bool = False):
    panel = ForestPanel("a number (px)", ROWS, bounds, outside)
    figure = draw_forest([panel])
    assert figure_to_png(figure).startswith(b"\x89PNG")
    return figure.axes[0]


def test_numbers_are_where_they_belong() -> None:
    axes = draw_bounds((0.5, np.inf))
    lines = [line.get_xdata() for line in axes.get_lines()]
    assert any(np.array_equal(x, (0.7, 0.8, 0.9)) for x in lines)
    assert any(np.array_equal(x, (0.55, 1.05)) for x in lines)
    assert sum(np.array_equal(x, (0.8,)) for x in lines) == 1
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["first", "single"]
    assert axes.get_xlabel() == "a number (px)"
    first = next(x for x in axes.get_lines() if len(x.get_xdata()) == 2)
    assert first.get_color() == KIND_COLORS["reproduced"]
    assert set(get_legend(axes.figure)) == {
        "a seed",
        "reproduced",
        "undecided",
        "agrees with the rule",
    }


@pytest.mark.parametrize(
    ("bounds", "outside", "spans"),
    [
        ((0.5, np.inf), False, [(0.5, None)]),
        ((-np.inf, 0.05), False, [(None, 0.05)]),
        ((2.5, 3.5), False, [(2.5, 3.5)]),
        ((-0.1, 0.1), True, [(None, -0.1), (0.1, None)]),
    ],
)
def test_what_agrees_is_shaded(bounds, outside, spans) -> None:
    axes = draw_bounds(bounds, outside)
    left, right = axes.get_xlim()
    for bound in bounds:
        assert not np.isfinite(bound) or left < bound < right
    found = [(p.get_x(), p.get_x() + p.get_width()) for p in axes.patches]
    expected = [
        (left if low is None else low, right if high is None else high)
        for low, high in spans
    ]
    np.testing.assert_allclose(found, expected)


def test_panels_side_by_side_share_their_rows() -> None:
    panels = [
        ForestPanel("OOD", ROWS, is_log=True),
        ForestPanel("ID", ROWS[1:]),
    ]
    first, second = draw_forest(panels, side_by_side=True).axes
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ["first", "single"]
    assert first.yaxis_inverted() and not first.patches
    assert (first.get_xscale(), second.get_xscale()) == ("log", "linear")
    # The lack of the first row does not move the second one.
    seeds, mean = second.lines  # one seed: no interval
    assert set(seeds.get_ydata()) <= {1 - 0.14}
    assert set(mean.get_ydata()) == {1}
