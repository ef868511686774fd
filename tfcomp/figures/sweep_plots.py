"""Curves with bands side by side, and intervals of many settings."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from matplotlib.ticker import MaxNLocator
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike

from tfcomp.figures.curve_plots import add_line_legend
from tfcomp.figures.curve_plots import draw_line
from tfcomp.figures.curve_plots import finish_axes
from tfcomp.figures.curve_plots import get_line_style
from tfcomp.figures.curve_plots import to_numbers
from tfcomp.figures.layout import add_panel_title
from tfcomp.figures.layout import add_title
from tfcomp.figures.layout import settle_layout

_PANEL_WIDTH = 3.4
_MAX_MARKERS = 16
# Below this ratio of the ends of an axis, powers of ten alone are too few.
_FEW_DECADES = 60


@dataclass(frozen=True)
class BandCurve:
    """A mean over something, with the interval of each point.

    Attributes:
        x: Places of the points, `[n]`.
        mean: Numbers, `[n]`.
        low: Lower ends of the intervals, `[n]`; NaN or None where unknown.
        high: Upper ends, `[n]`.
    """

    x: ArrayLike
    mean: ArrayLike
    low: ArrayLike
    high: ArrayLike


@dataclass(frozen=True)
class Interval:
    """A mean, its interval, and the numbers behind it.

    Attributes:
        mean: The mean.
        low: Lower end of the interval; None if it is unknown.
        high: Upper end.
        points: The single numbers.
    """

    mean: float
    low: float | None
    high: float | None
    points: Sequence[float] = field(default_factory=list)


def draw_curve_panels(
    panels: Mapping[str, Mapping[str, BandCurve]],
    *,
    xlabel: str,
    title: str = "",
    log: Collection[str] = (),
) -> Figure:
    """Draws curves with bands, one panel a quantity.

    A line of one name looks the same in every panel.

    Args:
        panels: Title of a panel to its curves by name.
        xlabel: What x is, with units.
        title: Title of the figure.
        log: Titles of the panels with a logarithmic scale. Numbers that are
            not above 0 leave gaps there; a band that reaches 0 reaches the
            bottom.

    Returns:
        The figure.
    """
    names = list(dict.fromkeys(n for curves in panels.values() for n in curves))
    if not names:
        raise ValueError("panels must have at least one curve, received none.")
    size = (_PANEL_WIDTH * len(panels) + 0.4, 3.2)
    figure = Figure(figsize=size, layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
        for name, curve in curves.items():
            _draw_band_curve(axes, names.index(name), name, curve, panel in log)
        if panel in log:
            _set_log_scale(axes, [curve.mean for curve in curves.values()])
        if all(_are_integers(curve.x) for curve in curves.values()):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(xlabel)
        finish_axes(axes)
        add_panel_title(axes, panel, _PANEL_WIDTH)
    add_title(figure, title)
    add_line_legend(figure)
    settle_layout(figure)
    return figure


def draw_intervals(
    panels: Mapping[str, Mapping[str, Interval]],
    *,
    ylabel: str = "",
    title: str = "",
    log: Collection[str] = (),
) -> Figure:
    """Draws one row a setting: every number, the mean and its interval.

    Args:
        panels: Title of a panel to its intervals by name; a name is one row,
            the first at the top.
        ylabel: What the names are.
        title: Title of the figure.
        log: Titles of the panels with a logarithmic scale.

    Returns:
        The figure.
    """
    names = list(dict.fromkeys(n for rows in panels.values() for n in rows))
    if not names:
        raise ValueError("panels must have at least one row, received none.")
    longest = max(map(len, names))
    width = 2.8 * len(panels) + 0.085 * longest + 0.6
    size = (width, 0.3 * len(names) + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (panel, rows) in zip(all_axes, panels.items(), strict=True):
        for name, interval in rows.items():
            _draw_interval(axes, names.index(name), interval)
        if panel in log:
            _set_log_scale(axes, [row.points for row in rows.values()], "x")
        finish_axes(axes)
        add_panel_title(axes, panel, 2.8)
    all_axes[0].set_yticks(range(len(names)), names)
    all_axes[0].set_ylim(len(names) - 0.5, -0.5)
    all_axes[0].set_ylabel(ylabel)
    add_title(figure, title)
    settle_layout(figure)
    return figure


def _draw_band_curve(
    axes: Axes, index: int, name: str, curve: BandCurve, is_log: bool
) -> None:
    x = np.asarray(curve.x, float)
    mean, low, high = map(to_numbers, (curve.mean, curve.low, curve.high))
    if is_log:
        mean = np.where(mean > 0, mean, np.nan)
        low = np.where(low > 0, low, np.finfo(float).tiny)
    has_markers = len(x) <= _MAX_MARKERS
    band = None if np.isnan(high).all() else (low, high)
    draw_line(axes, index, x, mean, name, band, has_markers)


def _draw_interval(axes: Axes, row: int, interval: Interval) -> None:
    color = get_line_style(0)["color"]
    points = to_numbers(interval.points)
    if interval.low is not None and interval.high is not None:
        axes.plot([interval.low, interval.high], [row, row], color=color, lw=2)
    axes.plot(points, np.full(len(points), row), "o", color="0.35", ms=3)
    axes.plot(interval.mean, row, "D", color=color, ms=5)


def _are_integers(values: ArrayLike) -> bool:
    values = np.asarray(values, float)
    return bool((values == values.round()).all())


def _set_log_scale(
    axes: Axes, numbers: Sequence[ArrayLike], direction: str = "y"
) -> None:
    """A logarithmic axis that ends near the numbers, not near an interval."""
    axes.set(**{f"{direction}scale": "log"})
    known = np.concatenate([to_numbers(n).ravel() for n in numbers] or [[]])
    known = known[known > 0]
    if not len(known):
        return
    limits = known.min() / 1.5, known.max() * 1.5
    axes.set(**{f"{direction}lim": limits})
    axis = axes.xaxis if direction == "x" else axes.yaxis
    if limits[1] / limits[0] < _FEW_DECADES:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
