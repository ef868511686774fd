"""Counts that grow with a size, in log-log scale, beside straight guides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from tfcomp.figures.layout import finish_figure
from tfcomp.figures.line_style import finish_axes, get_line_style

Points = Sequence[tuple[float, float]]
_GUIDE_STYLES = ((0, (1, 2)), (0, (4, 3)), (0, (6, 2, 1, 2)))
# Points of one size are drawn side by side, so far apart in log scale.
_SPREAD = 0.008


@dataclass(frozen=True)
class Scaling:
    """One quantity over sizes; all numbers are above 0.

    Attributes:
        points: Pairs of size and count, one a repeat.
        means: Quadruples of size, mean, and the ends of its interval, which
            may be None.
        missed: Pairs of size and a count that the quantity exceeds.
        line: Constant and exponent of a power law through the points. Without
            one, the means are joined.
    """

    points: Points = ()
    means: Sequence[tuple[float, float, float | None, float | None]] = ()
    missed: Points = ()
    line: tuple[float, float] | None = None


def draw_power_laws(
    series: Mapping[str, Scaling],
    guides: Mapping[str, float],
    title: str = "",
) -> Figure:
    """Draws training examples over the size of the grid, with fits, guides.

    This is figure 4c of the paper: single counts are faint, means over
    repeats are large, and sizes that were not reached are open triangles.

    Guides, from their name to an exponent, are lines to compare slopes with;
    each begins below the first of the counts at the smallest size.
    """
    points = [
        pair
        for scaling in series.values()
        for pair in (*scaling.points, *scaling.missed)
    ]
    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="grid size N (px)")
    axes.set(yscale="log", ylabel="training examples needed")
    for index, (name, scaling) in enumerate(series.items()):
        _draw_series(axes, index, name, scaling)
    _draw_guides(axes, points, guides)
    _set_ticks(axes, sorted({size for size, _ in points}))
    # All points are shown; the interval of few repeats may leave the axes.
    counts = [count for _, count in points]
    axes.set_ylim(min(counts) / 2.5, max(counts) * 2)
    finish_axes(axes)
    finish_figure(figure, title)
    return figure


def _draw_series(axes: Axes, index: int, name: str, scaling: Scaling) -> None:
    style = get_line_style(index)
    color, dashes, marker = style.values()
    faint = {"alpha": 0.4, "markersize": 4}
    axes.plot(*_spread(scaling.points), marker, color=color, **faint)
    hollow = {"markersize": 6, "fillstyle": "none"}
    axes.plot(*_spread(scaling.missed), "^", color=color, **hollow)
    for size, mean, low, high in scaling.means:
        ends = None if low is None else [[mean - low], [high - mean]]
        axes.errorbar(
            size, mean, ends, fmt=marker, color=color, markersize=7, capsize=3
        )
    axes.plot(*_get_line(scaling), color=color, linestyle=dashes, linewidth=1.6)
    # In the legend stands what all of this has in common.
    axes.plot([], [], label=name, linewidth=1.6, markersize=7, **style)


def _get_line(scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """The power law from the least to the largest size, or all means."""
    if scaling.line is None:
        x, y = np.reshape([mean[:2] for mean in scaling.means], (-1, 2)).T
        return x, y
    constant, exponent = scaling.line
    reached = [size for size, _ in scaling.points]
    ends = np.array([min(reached), max(reached)], float)
    return ends, constant * ends**exponent


def _spread(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Places of repeats: those of one size side by side."""
    if not points:
        return np.empty(0), np.empty(0)
    x, y = np.array(points, float).T
    shift = np.zeros(len(x))
    for size in np.unique(x):
        same = np.flatnonzero(x == size)
        shift[same] = np.arange(len(same)) - (len(same) - 1) / 2
    return x * np.exp(_SPREAD * shift), y


def _draw_guides(
    axes: Axes, points: Points, guides: Mapping[str, float]
) -> None:
    least, first = min(points)
    x = np.array([least, max(points)[0]], float)
    for index, (name, exponent) in enumerate(guides.items()):
        style = _GUIDE_STYLES[index % len(_GUIDE_STYLES)]
        y = 0.6 * first * (x / x[0]) ** exponent
        axes.plot(x, y, color="0.45", linestyle=style, lw=1.2, label=name)


def _set_ticks(axes: Axes, sizes: list[float]) -> None:
    """Plain numbers: every size, and 1, 2, 5 times powers of ten."""
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(sizes) == 1:
        axes.set_xlim(sizes[0] / 1.5, sizes[0] * 1.5)
