"""Curves of numbers over a number, in one pair of axes or in panels."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from tfcomp.figures.cells import shade_interval
from tfcomp.figures.layout import (
    add_panel_title,
    finish_figure,
)
from tfcomp.figures.line_style import (
    Band,
    draw_line,
    finish_axes,
    get_line_style,
    set_log_scale,
    to_numbers,
)

_PANEL_WIDTH = 3.4  # inches


@dataclass(frozen=True)
class BandCurve:
    """Means at the places x and the ends of their intervals, `[n]` each.

    An end is NaN or None where it is unknown. Values `[n, k]`, of seeds too
    few for an interval, are drawn as points.
    """

    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike
    high: ArrayLike
    values: ArrayLike | None = None


def draw_curves(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    logy: bool = False,
    shaded: tuple[float, float] | None = None,
    bands: Mapping[str, Band] | None = None,
) -> Figure:
    """Draws curves over one variable in one pair of axes.

    Args:
        x: Where the curves are known, `[n]`, finite.
        series: Name of a curve to its numbers, `[n]`. A number that is not
            finite leaves a gap; for `logy`, so does one that is not above 0.
        xlabel: What x is, with units.
        ylabel: What the numbers are, with units.
        logy: Whether the scale of the numbers is logarithmic.
        shaded: Ends of the interval of x that was held out from training.
        bands: Name of a curve to the lower and the upper ends of its
            intervals, `[n]` each.
    """
    x = np.asarray(x, float)
    curves = {name: to_numbers(y) for name, y in series.items()}
    bands = {
        name: (to_numbers(low), to_numbers(high))
        for name, (low, high) in (bands or {}).items()
    }
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.set_yscale("log" if logy else "linear")
    for index, (name, y) in enumerate(curves.items()):
        y = np.where(y > 0, y, np.nan) if logy else y
        draw_line(axes, index, x, y, name, bands.get(name))
    if shaded is not None:
        shade_interval(axes, *shaded)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    finish_axes(axes)
    finish_figure(figure, title)
    return figure


def draw_curve_panels(
    panels: Mapping[str, Mapping[str, BandCurve]],
    *,
    xlabel: str,
    title: str = "",
    log: Collection[str] = (),
    floors: Mapping[str, float] | None = None,
) -> Figure:
    """Draws curves with bands, one panel a quantity.

    A line of one name looks the same in every panel. `log` has the titles of
    the panels with a logarithmic scale: numbers that are not above 0 leave
    gaps there, and a band that reaches 0 reaches the bottom. `floors` has the
    titles of panels that show nothing below a number.
    """
    names = list(dict.fromkeys(n for curves in panels.values() for n in curves))
    size = (_PANEL_WIDTH * len(panels) + 0.4, 3.2)
    figure = Figure(figsize=size, layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
        for name, curve in curves.items():
            _draw_band_curve(axes, names.index(name), name, curve, panel in log)
        if panel in log:
            set_log_scale(axes, [curve.mean for curve in curves.values()])
        if floors and panel in floors:
            (low, high), floor = axes.get_ylim(), floors[panel]
            axes.set_ylim(max(low, floor), max(high, floor + 1))
        places = [np.asarray(curve.x, float) for curve in curves.values()]
        if all((x == x.round()).all() for x in places):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(xlabel)
        finish_axes(axes)
        add_panel_title(axes, panel, _PANEL_WIDTH)
    finish_figure(figure, title)
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
    draw_line(axes, index, x, mean, name, band)
    if curve.values is not None:
        look = get_line_style(index) | {"linestyle": "", "markersize": 3}
        axes.plot(x, to_numbers(curve.values), alpha=0.6, **look)
