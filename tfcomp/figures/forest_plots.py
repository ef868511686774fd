"""Forest plots: one row an estimate, with its seeds, mean and interval."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfcomp.figures import layout, line_style
from tfcomp.figures.line_style import LINE_COLORS

KIND_COLORS = {
    "reproduced": "#00734c",
    "refuted": "#b3261e",
    "undecided": "#946200",
    "not run": "#666666",
}
_ROW_HEIGHT = 0.30  # inches


@dataclass(frozen=True)
class ForestRow:
    """One estimate: the mean over seeds, and its interval if there is one.

    `kind` is what the legend calls the mean; verdicts have `KIND_COLORS`.
    """

    label: str
    mean: float
    low: float | None
    high: float | None
    seeds: Sequence[float] = field(default_factory=list)
    kind: str = "mean"


@dataclass(frozen=True)
class ForestPanel:
    """Estimates of one quantity (with units), the first one at the top.

    `bounds` are the lower and the upper bound of the rule, infinite if it has
    none; with `outside` the rule asks for numbers beyond them.
    """

    quantity: str
    rows: Sequence[ForestRow]
    bounds: tuple[float, float] | None = None
    outside: bool = False
    is_log: bool = False


def draw_forest(
    panels: Sequence[ForestPanel],
    *,
    title: str = "",
    side_by_side: bool = False,
) -> Figure:
    """Draws seeds as dots, and means as diamonds on their intervals.

    The numbers that agree with the rule of a panel are shaded. Panels, with at
    least one row in all, stand below each other; or side by side with the same
    rows, which are named once: a row is found by its label.
    """
    labels = list(dict.fromkeys(row.label for p in panels for row in p.rows))
    if side_by_side:
        width = 2.8 * len(panels) + 0.085 * max(map(len, labels))
        size = width + 0.6, _ROW_HEIGHT * len(labels) + 1.2
        shape: dict[str, Any] = {"ncols": len(panels), "sharey": True}
    else:
        heights = [_ROW_HEIGHT * len(p.rows) + 0.85 for p in panels]
        size = 6.6, sum(heights) + 0.15
        shape = {"nrows": len(panels), "height_ratios": heights}
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(**shape, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel, labels if side_by_side else None)
    layout.finish_figure(figure, title)
    return figure


def _draw_panel(
    axes: Axes, panel: ForestPanel, shared: list[str] | None
) -> None:
    for number, row in enumerate(panel.rows):
        _draw_row(axes, shared.index(row.label) if shared else number, row)
    line_style.finish_axes(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=layout.scale_text(9))
    labels = shared or [row.label for row in panel.rows]
    texts = [textwrap.fill(label, 34) for label in labels]
    axes.set_yticks(range(len(texts)), texts, fontsize=layout.scale_text(9))
    axes.set_ylim(len(texts) - 0.5, -0.5)
    letters = 30 if shared else 70
    axes.set_xlabel(
        textwrap.fill(panel.quantity, letters), fontsize=layout.scale_text(9)
    )
    if panel.is_log:
        line_style.set_log_scale(axes, [row.seeds for row in panel.rows], "x")
    if panel.bounds is not None:
        _show_rule(axes, panel.bounds, panel.outside)


def _draw_row(axes: Axes, place: int, row: ForestRow) -> None:
    color = KIND_COLORS.get(row.kind, LINE_COLORS[0])
    seeds = line_style.to_numbers(row.seeds)
    if len(seeds):
        places = place + np.linspace(-0.14, 0.14, len(seeds))
        dots: dict[str, Any] = {"color": "0.55", "ms": 3.5, "label": "a seed"}
        axes.plot(seeds, places, "o", **dots)
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [place] * 2, color=color, lw=2.2)
    axes.plot([row.mean], [place], "D", color=color, ms=6, label=row.kind)


def _show_rule(axes: Axes, rule: tuple[float, float], outside: bool) -> None:
    bounds = [bound for bound in rule if np.isfinite(bound)]
    left, right = axes.get_xlim()
    low, high = min([left, *bounds]), max([right, *bounds])
    margin = 0.06 * (high - low)
    left, right = low - margin, high + margin
    axes.set_xlim(left, right)
    low, high = max(rule[0], left), min(rule[1], right)
    parts = [(left, low), (high, right)] if outside else [(low, high)]
    shade: dict[str, Any] = {
        "alpha": 0.09,
        "lw": 0,
        "label": "agrees with the rule",
    }
    for part in parts:
        axes.axvspan(*part, color=LINE_COLORS[0], **shade)
    for bound in bounds:
        axes.axvline(bound, color=LINE_COLORS[0], lw=1.2, ls=(0, (4, 2)))
