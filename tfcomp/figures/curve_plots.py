"""Lines of numbers over a number, or over the stages of models."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.figures import layout, looks
from tfcomp.figures.looks import SLANTED, Numbers, shade_interval, to_numbers

_PANEL_WIDTH = 3.4  # inches


@dataclass(frozen=True)
class BandCurve:
    """Means at positions x, and the ends of their intervals (NaN: unknown)."""

    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike
    high: ArrayLike


def draw_curves(
    x: ArrayLike,
    series: Mapping[str, Numbers],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    logy: bool = False,
    shaded: tuple[float, float] | None = None,
    bands: Mapping[str, looks.Band] | None = None,
) -> Figure:
    """Draws curves with bands over one variable; `shaded` was held out."""
    figure = layout.make_figure((5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, (name, numbers) in enumerate(series.items()):
        label = looks.choose_label(name, series)
        y = to_numbers(numbers)
        y = np.where(y > 0, y, np.nan) if logy else y
        ends = (bands or {}).get(name)
        band = ends and (to_numbers(ends[0]), to_numbers(ends[1]))
        looks.draw_line(axes, index, np.asarray(x, float), y, label, band)
    if logy:
        looks.set_log_scale(axes, [to_numbers(n) for n in series.values()])
    if shaded is not None:
        shade_interval(axes, *shaded)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    looks.finish_axes(axes)
    layout.finish_figure(figure, title)
    return figure


def draw_curve_panels(
    panels: Mapping[str, Mapping[str, BandCurve]],
    *,
    xlabel: str,
    log: Collection[str] = (),
    floors: Mapping[str, float] | None = None,
) -> Figure:
    """Draws curves with bands, a panel for each quantity, from `floors` up."""
    names = list(dict.fromkeys(n for curves in panels.values() for n in curves))
    size = (_PANEL_WIDTH * len(panels) + 0.4, 3.2)
    figure = layout.make_figure(size, layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
        for name, curve in curves.items():
            label = looks.choose_label(name, names)
            place = names.index(name)
            _draw_band_curve(axes, place, label, curve, panel in log)
        if panel in log:
            means = [curve.mean for curve in curves.values()]
            looks.set_log_scale(axes, means)
        if floors and panel in floors:
            (low, high), floor = axes.get_ylim(), floors[panel]
            axes.set_ylim(max(low, floor), max(high, floor + 1))
        places = [np.asarray(curve.x, float) for curve in curves.values()]
        if all((x == x.round()).all() for x in places):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(xlabel)
        looks.finish_axes(axes)
        layout.add_panel_title(axes, panel, _PANEL_WIDTH)
    layout.finish_figure(figure, "")
    return figure


def _draw_band_curve(
    axes: Axes, index: int, name: str, curve: BandCurve, is_log: bool
) -> None:
    mean, low, high = map(to_numbers, (curve.mean, curve.low, curve.high))
    if is_log:
        mean = np.where(mean > 0, mean, np.nan)
        low = np.where(low > 0, low, np.finfo(float).tiny)
    band = None if np.isnan(high).all() else (low, high)
    x = np.asarray(curve.x, float)
    looks.draw_line(axes, index, x, mean, name, band)


def draw_stage_panels(
    panels: Mapping[str, Mapping[str, Sequence[float | None]]],
    stages: Mapping[str, Sequence[str]],
    *,
    ylabel: str,
    errors: Mapping[str, Mapping[str, ArrayLike]] | None = None,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draws numbers over merged stages; errors [n, 2] reach down and up."""
    names = list(dict.fromkeys(name for s in panels.values() for name in s))
    places = merge_stages([stages[name] for name in names])
    height = 2.6  # inches
    width = max(1.3 * height, 0.36 * len(places))
    size = len(panels) * width + 1.0, height + 0.6
    longest = max(map(len, places), default=0)
    is_tight = longest + 1 > 10 * width / len(places)  # ten letters an inch
    look = SLANTED if is_tight else {}
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (panel, series) in zip(grid, panels.items(), strict=True):
        widths = (errors or {}).get(panel, {})
        for name, numbers in series.items():
            xs = np.array([places.index(stage) for stage in stages[name]])
            y, band = to_numbers(numbers), None
            if name in widths:
                below, above = np.asarray(widths[name]).T
                band = y - below, y + above
            label = looks.choose_label(name, names)
            looks.draw_line(axes, names.index(name), xs, y, label, band)
        layout.add_panel_title(axes, panel, width)
        axes.set_xticks(range(len(places)), places, **look)
        axes.set_xlim(-0.4, len(places) - 0.6)
        looks.finish_axes(axes)
    grid[0].set_ylabel(ylabel)
    if limits:
        margin = 0.03 * (limits[1] - limits[0])
        grid[0].set_ylim(limits[0] - margin, limits[1] + margin)
    layout.finish_figure(figure, "")
    return figure


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
