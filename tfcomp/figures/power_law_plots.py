"""Counts that grow with a size, in log-log scale, beside straight guides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from tfcomp.figures import layout
from tfcomp.figures.line_style import finish_axes, get_line_style

Points = Sequence[tuple[float, float]]
_GUIDE_STYLES = ((0, (1, 2)), (0, (4, 3)), (0, (6, 2, 1, 2)))


@dataclass(frozen=True)
class Scaling:
    """One quantity over sizes; all numbers are above 0.

    Attributes:
        points: Pairs of size and count, one a repeat.
        means: Size, mean, and the ends of its interval, which may be None.
        missed: Pairs of size and a count that the quantity exceeds.
        line: Constant and exponent of a power law through the points. Without
            one, the means are joined.
    """

    points: Points = ()
    means: Sequence[tuple[float, float, float | None, float | None]] = ()
    missed: Points = ()
    line: tuple[float, float] | None = None


def draw_power_laws(
    series: Mapping[str, Scaling], guides: Mapping[str, float], title: str = ""
) -> Figure:
    """Draws training examples over the size of the grid (figure 4c).

    Single counts are faint, means over repeats are large, and sizes that were
    not reached are open triangles. Guides, from their name to an exponent, are
    lines to compare slopes with, from below the least count at the least size.
    """
    points = [p for s in series.values() for p in (*s.points, *s.missed)]
    figure = layout.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="grid size N (px)")
    axes.set(yscale="log", ylabel="training examples needed")
    for index, (name, scaling) in enumerate(series.items()):
        _draw_series(axes, index, name, scaling)
    (least, first), (largest, _) = min(points), max(points)
    x = np.array([least, largest], float)
    for index, (name, exponent) in enumerate(guides.items()):
        style = _GUIDE_STYLES[index % len(_GUIDE_STYLES)]
        y = 0.6 * first * (x / x[0]) ** exponent
        axes.plot(x, y, color="0.45", linestyle=style, lw=1.2, label=name)
    # Plain numbers: every size, and 1, 2, 5 times powers of ten.
    sizes = sorted({size for size, _ in points})
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(sizes) == 1:
        axes.set_xlim(sizes[0] / 1.5, sizes[0] * 1.5)
    # All points are shown; the interval of few repeats may leave the axes.
    counts = [count for _, count in points]
    axes.set_ylim(min(counts) / 2.5, max(counts) * 2)
    finish_axes(axes)
    layout.finish_figure(figure, title)
    return figure


def _draw_series(axes: Axes, index: int, name: str, scaling: Scaling) -> None:
    style = get_line_style(index)
    color, dashes, marker = style.values()
    faint: dict[str, Any] = {"alpha": 0.4, "markersize": 4}
    axes.plot(*_spread(scaling.points), marker, color=color, **faint)
    hollow: dict[str, Any] = {"markersize": 6, "fillstyle": "none"}
    axes.plot(*_spread(scaling.missed), "^", color=color, **hollow)
    large: dict[str, Any] = {"fmt": marker, "markersize": 7, "capsize": 3}
    for size, mean, low, high in scaling.means:
        ends = None
        if low is not None and high is not None:
            ends = [[mean - low], [high - mean]]
        axes.errorbar(size, mean, ends, color=color, **large)
    axes.plot(*_get_line(scaling), color=color, linestyle=dashes, linewidth=1.6)
    # In the legend stands what all of this has in common.
    axes.plot([], [], label=name, linewidth=1.6, markersize=7, **style)


def _get_line(scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """Returns the power law over all sizes, or all means without one."""
    if scaling.line is None:
        return tuple(np.reshape([m[:2] for m in scaling.means], (-1, 2)).T)
    constant, exponent = scaling.line
    ends = np.array([min(scaling.points)[0], max(scaling.points)[0]], float)
    return ends, constant * ends**exponent


def _spread(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Moves repeats of one size side by side, on a log scale."""
    x, y = np.reshape(np.array(points, float), (-1, 2)).T
    shift = np.zeros(len(x))
    for size in np.unique(x):
        same = np.flatnonzero(x == size)
        shift[same] = np.arange(len(same)) - (len(same) - 1) / 2
    return x * np.exp(0.008 * shift), y
