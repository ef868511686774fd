"""Figures of numbers over seeds against rules."""

from __future__ import annotations

import numpy as np
import pytest

from tfcomp.figures import figure_to_png
from tfcomp.figures.estimate_plots import COLORS
from tfcomp.figures.estimate_plots import EstimatePanel
from tfcomp.figures.estimate_plots import EstimateRow
from tfcomp.figures.estimate_plots import draw_estimates

ROWS = (
    EstimateRow("first", (0.7, 0.8, 0.9), 0.8, 0.55, 1.05, "reproduced"),
    EstimateRow("single", (0.3,), 0.3, None, None, "undecided"),
)


def draw_bounds(bounds: tuple[float, float], outside: bool = False):
    panel = EstimatePanel("a number (px)", bounds, outside, ROWS)
    figure = draw_estimates([panel])
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
    assert first.get_color() == COLORS["reproduced"]


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
    found = [
        (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in axes.patches
    ]
    expected = [
        (left if low is None else low, right if high is None else high)
        for low, high in spans
    ]
    np.testing.assert_allclose(found, expected)
