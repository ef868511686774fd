"""Estimates over seeds: forest plots, and counts that grow with a size."""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from tfcomp.figures import layout, looks
from tfcomp.figures.exhibits import Plot

Points = Sequence[tuple[float, float]]
_ROW_HEIGHT = 0.30  # inches
_GUIDE_STYLES = ((0, (1, 2)), (0, (4, 3)), (0, (6, 2, 1, 2)))


@dataclass(frozen=True)
class ForestRow:
    """One estimate: the mean over seeds, and its interval if there is one."""

    label: str
    mean: float
    low: float | None
    high: float | None
    seeds: Sequence[float] = field(default_factory=list)


def draw_forest(
    panels: Mapping[str, Sequence[ForestRow]],
    log: Collection[str] = (),
    mean: str = "mean",
) -> Plot:
    """Draws seeds as dots, and means as diamonds on their intervals."""
    labels = [*dict.fromkeys(r.label for rs in panels.values() for r in rs)]
    width = 2.8 * len(panels) + 0.085 * max(map(len, labels))
    size = width + 0.6, _ROW_HEIGHT * len(labels) + 1.2
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(ncols=len(panels), sharey=True, squeeze=False)[0]
    small = layout.scale_text(9)
    for axes, (quantity, rows) in zip(grid, panels.items(), strict=True):
        for row in rows:
            _draw_row(axes, labels.index(row.label), row, mean)
        looks.finish_axes(axes)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=small)
        texts = [textwrap.fill(label, 34) for label in labels]
        axes.set_yticks(range(len(texts)), texts, fontsize=small)
        axes.set_ylim(len(texts) - 0.5, -0.5)
        axes.set_xlabel(textwrap.fill(quantity, 30), fontsize=small)
        if quantity in log:
            looks.set_log_scale(axes, [row.seeds for row in rows], "x")
    table = partial(tabulate_forest, panels)
    return layout.finish_figure(figure, "", table)


def tabulate_forest(panels: Mapping[str, Sequence[ForestRow]]) -> pd.DataFrame:
    """Returns a row for each seed, and for each mean with its interval."""
    rows = []
    for panel, drawn in panels.items():
        for row in drawn:
            start = {"panel": panel, "row": row.label}
            rows += [{**start, "mark": "seed", "value": v} for v in row.seeds]
            ends = {"low": row.low, "high": row.high}
            rows.append({**start, "mark": "mean", "value": row.mean, **ends})
    return pd.DataFrame(rows)


def _draw_row(axes: Axes, place: int, row: ForestRow, mean: str) -> None:
    color = looks.get_line_style(0)["color"]
    dot, line, diamond = map(layout.scale_text, (3.5, 2.2, 6))
    seeds = looks.to_numbers(row.seeds)
    if len(seeds):
        places = place + np.linspace(-0.14, 0.14, len(seeds))
        axes.plot(seeds, places, "o", color="0.55", ms=dot, label="a seed")
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [place] * 2, color=color, lw=line)
    axes.plot([row.mean], [place], "D", color=color, ms=diamond, label=mean)


@dataclass(frozen=True)
class Scaling:
    """One quantity over sizes: repeats, means with intervals, a power law.

    `missed` has sizes with counts that the quantity exceeds; the `line` is a
    constant and an exponent.
    """

    points: Points = ()
    means: Sequence[tuple[float, float, float | None, float | None]] = ()
    missed: Points = ()
    line: tuple[float, float] | None = None


def draw_power_laws(
    series: Mapping[str, Scaling], guides: Mapping[str, float], title: str = ""
) -> Plot:
    """Draws training examples over grid sizes, and guides (figure 4c)."""
    points = [p for s in series.values() for p in (*s.points, *s.missed)]
    figure = layout.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="grid size N (px)")
    axes.set(yscale="log", ylabel="training examples needed")
    for index, (name, scaling) in enumerate(series.items()):
        _draw_scaling(axes, index, name, scaling)
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
    looks.finish_axes(axes)
    table = partial(tabulate_scaling, series)
    return layout.finish_figure(figure, title, table)


def tabulate_scaling(series: Mapping[str, Scaling]) -> pd.DataFrame:
    """Returns a row for each search and for each mean."""
    columns = ("grid_size", "examples", "low", "high")
    rows = [
        {"line": name, "mark": mark, **dict(zip(columns, mean, strict=False))}
        for name, scaling in series.items()
        for mark, means in (
            ("search", scaling.points),
            ("not reached", scaling.missed),
            ("mean", scaling.means),
        )
        for mean in means
    ]
    return pd.DataFrame(rows)


def draw_contours(
    points: Sequence[tuple[float, float, float]], labels: Sequence[str]
) -> Plot:
    """Draws numbers at points (x, y), and lines where they are equal."""
    figure = layout.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    x, y, z = np.array(points, float).T
    filled = axes.tricontourf(x, y, z, levels=8, cmap="viridis")
    levels = np.asarray(filled.levels)
    lines = axes.tricontour(x, y, z, levels=levels, colors="white")
    axes.clabel(lines, fmt="%.3g")
    axes.plot(x, y, "o", color="black", ms=3, clip_on=False)
    x_label, y_label, label = labels
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_xticks(np.unique(x))
    figure.colorbar(filled, label=label)
    data = pd.DataFrame(points, columns=list(labels))
    return layout.finish_figure(figure, "", lambda: data)


def _draw_scaling(axes: Axes, index: int, name: str, scaling: Scaling) -> None:
    style = looks.get_line_style(index)
    color, dashes, marker = (
        style[key] for key in ("color", "linestyle", "marker")
    )
    tiny, small, large, line = map(layout.scale_text, (4, 6, 7, 1.6))
    faint: dict[str, Any] = {"alpha": 0.4, "markersize": tiny}
    axes.plot(*_spread(scaling.points), marker, color=color, **faint)
    hollow: dict[str, Any] = {"markersize": small, "fillstyle": "none"}
    axes.plot(*_spread(scaling.missed), "^", color=color, **hollow)
    look: dict[str, Any] = {"fmt": marker, "markersize": large, "capsize": 3}
    for size, mean, low, high in scaling.means:
        ends = None
        if low is not None and high is not None:
            ends = [[mean - low], [high - mean]]
        axes.errorbar(size, mean, ends, color=color, **look)
    if scaling.line is None:
        x, y = np.reshape([mean[:2] for mean in scaling.means], (-1, 2)).T
    else:
        constant, exponent = scaling.line
        x = np.array([f(scaling.points)[0] for f in (min, max)], float)
        y = constant * x**exponent
    axes.plot(x, y, color=color, linestyle=dashes, linewidth=line)
    # In the legend stands what all of this has in common.
    axes.plot([], [], label=name, linewidth=line, markersize=large, **style)


def _spread(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Moves repeats of one size side by side, on a log scale."""
    x, y = np.reshape(np.array(points, float), (-1, 2)).T
    shift = np.zeros(len(x))
    for size in np.unique(x):
        same = np.flatnonzero(x == size)
        shift[same] = np.arange(len(same)) - (len(same) - 1) / 2
    return x * np.exp(0.008 * shift), y
