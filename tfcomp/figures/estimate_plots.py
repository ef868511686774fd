"""Forests: scores of settings as seeds, means and intervals."""

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from tfcomp.figures import curve_plots, layout
from tfcomp.figures.exhibits import Plot

_ROW_HEIGHT = 0.30  # inches


def list_marks(
    panel: str,
    row: str,
    seeds: Sequence[float],
    mean: float,
    ends: tuple[float | None, float | None],
) -> list[dict[str, Any]]:
    """Returns marks of a forest: seeds, and their mean with its interval."""
    place = {"panel": panel, "row": row}
    marks: list[dict[str, Any]] = [
        {**place, "mark": "seed", "value": value, "low": None, "high": None}
        for value in seeds
    ]
    low, high = ends
    marks.append(
        {**place, "mark": "mean", "value": mean, "low": low, "high": high}
    )
    return marks


def draw_forest(
    marks: Sequence[dict[str, Any]],
    log: Collection[str] = (),
    mean: str = "mean",
) -> Plot:
    """Draws seeds as dots, and means as diamonds on their intervals.

    Args:
        marks: Results of `list_marks`: a panel for each score, a row for each
            setting.
        log: The panels with logarithmic axes.
        mean: The name of the means in the legend.
    """
    table = pd.DataFrame(marks)
    table = table.astype({"value": float, "low": float, "high": float})
    panels = list(table["panel"].unique())
    rows = list(table["row"].unique())
    width = 2.8 * len(panels) + 0.085 * max(map(len, rows)) + 0.6
    size = (width, _ROW_HEIGHT * len(rows) + 1.2)
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(ncols=len(panels), sharey=True, squeeze=False)[0]
    small = layout.scale_text(9)
    for axes, panel in zip(grid, panels, strict=True):
        shown = table[table["panel"] == panel]
        for name, row in shown.groupby("row", sort=False):
            _draw_row(axes, rows.index(name), row, mean)
        curve_plots.finish_axes(axes)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=small)
        labels = [textwrap.fill(row, 34) for row in rows]
        axes.set_yticks(range(len(rows)), labels, fontsize=small)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(textwrap.fill(panel, 30), fontsize=small)
        if panel in log:
            seeds = shown.loc[shown["mark"] == "seed", "value"]
            curve_plots.set_log_scale(axes, seeds, "x")
    return layout.finish_figure(figure, "", lambda: table)


def _draw_row(axes: Axes, place: int, marks: pd.DataFrame, label: str) -> None:
    color = curve_plots.get_line_style(0)["color"]
    is_seed = marks["mark"] == "seed"
    seeds = marks.loc[is_seed, "value"]
    if len(seeds):
        heights = place + np.linspace(-0.14, 0.14, len(seeds))
        size = layout.scale_text(3.5)
        axes.plot(seeds, heights, "o", color="0.55", ms=size, label="a seed")

    (mean,) = marks[~is_seed].to_dict("records")
    ends = [mean["low"], mean["high"]]
    if np.isfinite(ends).all():
        linewidth = layout.scale_text(2.2)
        axes.plot(ends, [place, place], color=color, lw=linewidth)
    size = layout.scale_text(6)
    axes.plot([mean["value"]], [place], "D", color=color, ms=size, label=label)
