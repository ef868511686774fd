"""Numbers over seeds with their intervals, against rules."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tfcomp.figures.layout import settle_layout

COLORS = {
    "reproduced": "#00734c",
    "refuted": "#b3261e",
    "undecided": "#946200",
    "not run": "#666666",
}
RULE_COLOR = "#0072b2"
_ROW_HEIGHT = 0.30
_PANEL_EXTRA = 0.85
_LABEL_LETTERS = 34


@dataclass(frozen=True)
class EstimateRow:
    """One line of a figure.

    Attributes:
        label: What it is of.
        values: The numbers of single seeds.
        mean: Their mean.
        low: Lower end of its interval, if there is one.
        high: Upper end.
        verdict: Its verdict, which gives the colour.
    """

    label: str
    values: Sequence[float]
    mean: float
    low: float | None
    high: float | None
    verdict: str


@dataclass(frozen=True)
class EstimatePanel:
    """Rows of one quantity under one rule.

    Attributes:
        quantity: What the numbers are, with units.
        bounds: Lower and upper bound of the rule; infinite where it has none.
        outside: Whether the rule asks for numbers outside the bounds.
        rows: The numbers.
    """

    quantity: str
    bounds: tuple[float, float]
    outside: bool
    rows: Sequence[EstimateRow]


def draw_estimates(panels: Sequence[EstimatePanel]) -> Figure:
    """Draws panels below each other: seeds, means, intervals and rules.

    Dots are seeds, a diamond with a bar is the mean with its interval; what
    agrees with the rule is shaded.

    Args:
        panels: At least one, each with at least one row.

    Returns:
        The figure.
    """
    heights = [
        _ROW_HEIGHT * max(len(panel.rows), 1) + _PANEL_EXTRA for panel in panels
    ]
    figure = Figure(figsize=(6.6, sum(heights) + 0.45), layout="constrained")
    grid = figure.subplots(
        len(panels), 1, squeeze=False, height_ratios=heights
    )[:, 0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    _add_legend(figure, panels)
    settle_layout(figure)
    return figure


def _draw_panel(axes: Axes, panel: EstimatePanel) -> None:
    for place, row in enumerate(panel.rows):
        color = COLORS.get(row.verdict, "black")
        spread = np.linspace(-0.14, 0.14, len(row.values))
        if len(row.values):
            axes.plot(row.values, place + spread, "o", color="0.55", ms=3.5)
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place] * 2, color=color, lw=2.2)
        axes.plot([row.mean], [place], "D", color=color, ms=6)
    labels = [textwrap.fill(r.label, _LABEL_LETTERS) for r in panel.rows]
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(textwrap.fill(panel.quantity, 70), fontsize=9)
    axes.tick_params(axis="x", labelsize=9)
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["right", "top", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    _show_rule(axes, panel)


def _show_rule(axes: Axes, panel: EstimatePanel) -> None:
    bounds = [bound for bound in panel.bounds if np.isfinite(bound)]
    left, right = axes.get_xlim()
    low, high = min([left, *bounds]), max([right, *bounds])
    margin = 0.06 * (high - low)
    left, right = low - margin, high + margin
    axes.set_xlim(left, right)
    inside = max(panel.bounds[0], left), min(panel.bounds[1], right)
    parts = [inside]
    if panel.outside:
        parts = [(left, inside[0]), (inside[1], right)]
    for part in parts:
        axes.axvspan(*part, color=RULE_COLOR, alpha=0.09, lw=0)
    for bound in bounds:
        axes.axvline(bound, color=RULE_COLOR, lw=1.2, ls=(0, (4, 2)))


def _add_legend(figure: Figure, panels: Sequence[EstimatePanel]) -> None:
    found = {row.verdict for panel in panels for row in panel.rows}
    handles = [
        Line2D([], [], color=color, marker="D", ms=5, lw=2, label=verdict)
        for verdict, color in COLORS.items()
        if verdict in found
    ]
    if any(row.values for panel in panels for row in panel.rows):
        style = {"color": "0.55", "marker": "o", "ms": 3.5, "lw": 0}
        handles.append(Line2D([], [], label="a seed", **style))
    shade = Patch(color=RULE_COLOR, alpha=0.15, label="agrees with the rule")
    handles.append(shade)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handlelength=1.8,
        columnspacing=1.3,
    )
