"""Lines of numbers over a number, or over the stages of models."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tfcomp.figures import layout, looks
from tfcomp.figures.exhibits import Plot
from tfcomp.figures.looks import SLANTED, Numbers, shade_interval, to_numbers

_PANEL_WIDTH = 3.4  # inches


@dataclass(frozen=True)
class BandCurve:
    """Means at numbers or stages x, and the ends of intervals if known."""

    x: Iterable[Any]
    mean: Numbers
    low: Numbers | None = None
    high: Numbers | None = None


Panels = Mapping[str, Mapping[str, BandCurve]]


def draw_curves(
    x: Iterable[Any],
    series: Mapping[str, Numbers],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    logy: bool = False,
    shaded: tuple[float, float] | None = None,
    bands: Mapping[str, looks.Band] | None = None,
) -> Plot:
    """Draws curves with bands over one variable; `shaded` was held out."""
    ends = bands or {}
    curves = {
        name: BandCurve(x, mean, *ends.get(name, ()))
        for name, mean in series.items()
    }
    figure = layout.make_figure((5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    _draw_lines(axes, curves, list(curves), logy)
    if shaded is not None:
        shade_interval(axes, *shaded)
    _keep_ticks_whole(axes, [x])
    axes.set(xlabel=xlabel, ylabel=ylabel)
    looks.finish_axes(axes)
    table = partial(tabulate_curves, {ylabel: curves}, "x")
    return layout.finish_figure(figure, title, table)


def draw_curve_panels(
    panels: Panels,
    *,
    xlabel: str,
    log: Collection[str] = (),
    floors: Mapping[str, float] | None = None,
) -> Plot:
    """Draws curves with bands, a panel for each quantity, from `floors` up."""
    names = list(dict.fromkeys(n for curves in panels.values() for n in curves))
    size = (_PANEL_WIDTH * len(panels) + 0.4, 3.2)
    figure = layout.make_figure(size, layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
        _draw_lines(axes, curves, names, panel in log)
        if floors and panel in floors:
            (low, high), floor = axes.get_ylim(), floors[panel]
            axes.set_ylim(max(low, floor), max(high, floor + 1))
        _keep_ticks_whole(axes, [curve.x for curve in curves.values()])
        axes.set_xlabel(xlabel)
        looks.finish_axes(axes)
        layout.add_panel_title(axes, panel, _PANEL_WIDTH)
    table = partial(tabulate_curves, panels, "x")
    return layout.finish_figure(figure, "", table)


def _keep_ticks_whole(axes: Axes, places: Iterable[Any]) -> None:
    numbers = [np.asarray(x, float) for x in places]
    if all((x == x.round()).all() for x in numbers):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_stage_panels(
    panels: Panels,
    *,
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Plot:
    """Draws curves over stages, which are merged to one axis."""
    curves = {name: c for each in panels.values() for name, c in each.items()}
    places = merge_stages([list(map(str, c.x)) for c in curves.values()])
    height = 2.6  # inches
    width = max(1.3 * height, 0.36 * len(places))
    size = len(panels) * width + 1.0, height + 0.6
    longest = max(map(len, places), default=0)
    is_tight = longest + 1 > 10 * width / len(places)  # ten letters an inch
    look = SLANTED if is_tight else {}
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (panel, drawn) in zip(grid, panels.items(), strict=True):
        _draw_lines(axes, drawn, list(curves), stages=places)
        layout.add_panel_title(axes, panel, width)
        axes.set_xticks(range(len(places)), places, **look)
        axes.set_xlim(-0.4, len(places) - 0.6)
        looks.finish_axes(axes)
    grid[0].set_ylabel(ylabel)
    if limits:
        margin = 0.03 * (limits[1] - limits[0])
        grid[0].set_ylim(limits[0] - margin, limits[1] + margin)
    table = partial(tabulate_curves, panels, "stage")
    return layout.finish_figure(figure, "", table)


def _draw_lines(
    axes: Axes,
    curves: Mapping[str, BandCurve],
    names: Sequence[str],
    is_log: bool = False,
    stages: Sequence[str] = (),
) -> None:
    """Draws lines that look as their place among the names says."""
    for name, curve in curves.items():
        mean, *ends = map(to_numbers, (curve.mean, curve.low, curve.high))
        if is_log:
            mean = np.where(mean > 0, mean, np.nan)
            ends[0] = np.where(ends[0] > 0, ends[0], np.finfo(float).tiny)
        x = [stages.index(str(s)) for s in curve.x] if stages else curve.x
        band = None if np.isnan(ends[1]).all() else (ends[0], ends[1])
        label = looks.choose_label(name, names)
        place = names.index(name)
        looks.draw_line(axes, place, np.asarray(x, float), mean, label, band)
    if is_log:
        means = [to_numbers(curve.mean) for curve in curves.values()]
        looks.set_log_scale(axes, means)


def tabulate_curves(panels: Panels, x: str) -> pd.DataFrame:
    """Returns a row for each point, with its interval if any is known."""
    tables = []
    for panel, curves in panels.items():
        for name, curve in curves.items():
            columns = {"panel": panel, "line": name, x: curve.x}
            for key in ("mean", "low", "high"):
                columns[key] = to_numbers(getattr(curve, key))
            tables.append(pd.DataFrame(columns))
    table = pd.concat(tables, ignore_index=True)
    ends = ["low", "high"]
    return table.drop(columns=[e for e in ends if table[e].isna().all()])


def merge_stages(lists: Sequence[Sequence[str]]) -> list[str]:
    """Merges stages; one of a shorter list goes before its successor."""
    merged: list[str] = []
    for stages in sorted(lists, key=len, reverse=True):  # stable
        place = len(merged)
        for stage in reversed(stages):
            if stage not in merged:
                merged.insert(place, stage)
            elif merged.index(stage) < place:
                place = merged.index(stage)
            else:
                raise ValueError(
                    "stages must be in the same order for all lines, each "
                    f"once, received {[list(names) for names in lists]}."
                )
    return merged
