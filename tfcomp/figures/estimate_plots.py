"""Estimates over seeds: forests, scores, and counts that grow with a size."""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from tfcomp.figures import curve_plots, layout
from tfcomp.figures.exhibits import Plot, melt
from tfcomp.figures.map_plots import NO_VALUE_COLOR

_ROW_HEIGHT = 0.30  # inches
_GUIDE_STYLES = ((0, (1, 2)), (0, (4, 3)), (0, (6, 2, 1, 2)))


def list_marks(
    panel: str,
    row: str,
    seeds: Sequence[float],
    mean: float,
    ends: tuple[float | None, float | None],
) -> list[dict[str, Any]]:
    """Returns marks of a forest: seeds, and their mean with its interval."""
    marks = [("seed", value, None, None) for value in seeds]
    columns = ("panel", "row", "mark", "value", "low", "high")
    return [
        dict(zip(columns, (panel, row, *mark), strict=True))
        for mark in (*marks, ("mean", mean, *ends))
    ]


def draw_forest(
    marks: Sequence[dict[str, Any]],
    log: Collection[str] = (),
    mean: str = "mean",
) -> Plot:
    """Draws seeds as dots, and means as diamonds on their intervals."""
    table = pd.DataFrame(marks)
    table = table.astype(dict.fromkeys(("value", "low", "high"), float))
    panels, labels = table["panel"].unique(), list(table["row"].unique())
    width = 2.8 * len(panels) + 0.085 * max(map(len, labels))
    size = width + 0.6, _ROW_HEIGHT * len(labels) + 1.2
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(ncols=len(panels), sharey=True, squeeze=False)[0]
    small = layout.scale_text(9)
    for axes, quantity in zip(grid, panels, strict=True):
        shown = table[table["panel"] == quantity]
        for label, rows in shown.groupby("row", sort=False):
            _draw_row(axes, labels.index(label), rows, mean)
        curve_plots.finish_axes(axes)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=small)
        texts = [textwrap.fill(label, 34) for label in labels]
        axes.set_yticks(range(len(texts)), texts, fontsize=small)
        axes.set_ylim(len(texts) - 0.5, -0.5)
        axes.set_xlabel(textwrap.fill(quantity, 30), fontsize=small)
        if quantity in log:
            seeds = shown.loc[shown["mark"] == "seed", "value"]
            curve_plots.set_log_scale(axes, seeds, "x")
    return layout.finish_figure(figure, "", lambda: table)


def _draw_row(axes: Axes, place: int, marks: pd.DataFrame, mean: str) -> None:
    color = curve_plots.get_line_style(0)["color"]
    dot, line, diamond = map(layout.scale_text, (3.5, 2.2, 6))
    is_seed = marks["mark"] == "seed"
    seeds = marks.loc[is_seed, "value"]
    if len(seeds):
        places = place + np.linspace(-0.14, 0.14, len(seeds))
        axes.plot(seeds, places, "o", color="0.55", ms=dot, label="a seed")
    (whole,) = marks[~is_seed].to_dict("records")
    ends = [whole["low"], whole["high"]]
    if np.isfinite(ends).all():
        axes.plot(ends, [place] * 2, color=color, lw=line)
    look: dict[str, Any] = {"color": color, "ms": diamond, "label": mean}
    axes.plot([whole["value"]], [place], "D", **look)


def draw_power_laws(
    table: pd.DataFrame,
    laws: Mapping[str, tuple[float, float] | None],
    guides: Mapping[str, float],
    title: str = "",
) -> Plot:
    """Draws training examples over grid sizes, and guides (figure 4c).

    The marks of a `line` are each `search`, sizes at which it is `not reached`,
    and each `mean` with its interval. Its law is a constant and an exponent.
    """
    searches = table[table["mark"] != "mean"]
    sizes, counts = searches["grid_size"], searches["examples"]
    figure = layout.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="grid size N (px)")
    axes.set(yscale="log", ylabel="training examples needed")
    for index, (name, law) in enumerate(laws.items()):
        _draw_scaling(axes, index, table[table["line"] == name], law)
    first = counts[sizes == sizes.min()].min()
    x = np.array([sizes.min(), sizes.max()], float)
    for index, (name, exponent) in enumerate(guides.items()):
        style = _GUIDE_STYLES[index % len(_GUIDE_STYLES)]
        y = 0.6 * first * (x / x[0]) ** exponent
        axes.plot(x, y, color="0.45", linestyle=style, lw=1.2, label=name)
    # Plain numbers: every size, and 1, 2, 5 times powers of ten.
    ticks = sorted(sizes.unique())
    axes.set_xticks(ticks, [f"{size:g}" for size in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(ticks) == 1:
        axes.set_xlim(ticks[0] / 1.5, ticks[0] * 1.5)
    # All points are shown; the interval of few repeats may leave the axes.
    axes.set_ylim(counts.min() / 2.5, counts.max() * 2)
    curve_plots.finish_axes(axes)
    return layout.finish_figure(figure, title, lambda: table)


def _draw_scaling(
    axes: Axes,
    index: int,
    table: pd.DataFrame,
    law: tuple[float, float] | None,
) -> None:
    style = curve_plots.get_line_style(index)
    color, dashes, marker = (
        style[key] for key in ("color", "linestyle", "marker")
    )
    marks = dict(list(table.groupby("mark")))
    none = table.iloc[:0]
    found, missed, means = (
        marks.get(mark, none) for mark in ("search", "not reached", "mean")
    )
    tiny, small, large, line = map(layout.scale_text, (4, 6, 7, 1.6))
    faint: dict[str, Any] = {"alpha": 0.4, "markersize": tiny}
    axes.plot(*_spread(found), marker, color=color, **faint)
    hollow: dict[str, Any] = {"markersize": small, "fillstyle": "none"}
    axes.plot(*_spread(missed), "^", color=color, **hollow)
    look: dict[str, Any] = {"fmt": marker, "markersize": large, "capsize": 3}
    x, y = (means[c].to_numpy(float) for c in ("grid_size", "examples"))
    ends = abs(means[["low", "high"]].to_numpy(float) - y[:, None])
    for size, mean, each in zip(x, y, ends, strict=True):
        bars = each[:, None] if np.isfinite(each).all() else None
        axes.errorbar(size, mean, bars, color=color, **look)
    if law is not None:
        x = np.array([found["grid_size"].min(), found["grid_size"].max()])
        y = law[0] * x ** law[1]
    axes.plot(x, y, color=color, linestyle=dashes, linewidth=line)
    # One entry of the legend has the line and its marks.
    name = table["line"].iloc[0]
    axes.plot([], [], label=name, linewidth=line, markersize=large, **style)


def _spread(points: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Moves repeats of one size side by side, on a log scale."""
    repeats = points.groupby("grid_size")["examples"]
    shift = repeats.cumcount() - (repeats.transform("size") - 1) / 2
    return points["grid_size"] * np.exp(0.008 * shift), points["examples"]


def draw_contours(points: pd.DataFrame) -> Plot:
    """Draws lines of equal numbers; the columns are x, y and the number."""
    figure = layout.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    x, y, z = points.to_numpy(float).T
    filled = axes.tricontourf(x, y, z, levels=8, cmap="viridis")
    levels = np.asarray(filled.levels)
    lines = axes.tricontour(x, y, z, levels=levels, colors="white")
    axes.clabel(lines, fmt="%.3g")
    axes.plot(x, y, "o", color="black", ms=3, clip_on=False)
    x_label, y_label, label = points
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_xticks(np.unique(x))
    figure.colorbar(filled, label=label)
    return layout.finish_figure(figure, "", lambda: points)


def draw_score_table(
    values: Mapping[tuple[str, str], float],
    texts: Mapping[tuple[str, str], str],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    title: str,
) -> Plot:
    """Draws a cell for each row and column, from 0 to 1, gray if NaN."""
    size = 1.15 * len(columns) + 3.0, 0.34 * len(rows) + 1.6
    figure = layout.make_figure(size, layout="constrained")
    axes = figure.subplots()
    table = np.array(
        [[values.get((row, c), np.nan) for c in columns] for row in rows]
    )
    picture = axes.imshow(
        np.clip(table, 0.0, 1.0),
        colormaps["RdYlBu"].with_extremes(bad=NO_VALUE_COLOR),
        Normalize(0, 1),
        aspect="auto",
    )
    look: dict[str, Any] = {"ha": "center", "va": "center"}
    look["fontsize"] = small = layout.scale_text(8)
    for y, x in np.ndindex(table.shape):
        place = rows[y], columns[x]
        if place not in values:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, color="white"))
            continue
        is_dark = table[y, x] < 0.28 or table[y, x] > 0.86
        color = "white" if is_dark else "black"
        axes.text(x, y, texts.get(place, ""), color=color, **look)
    words = [column.split() for column in columns]
    names = [
        "\n".join(w if len(w) <= 16 else w.replace(":", ":\n", 1) for w in text)
        for text in words
    ]
    axes.set_xticks(range(len(columns)), names)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, labelsize=small)
    axes.xaxis.tick_top()
    figure.colorbar(picture, ax=axes, label=label, shrink=0.8)
    cells = dict(zip(rows, table, strict=True))
    data = partial(melt, cells, ("row", "column"), "value")
    return layout.finish_figure(figure, title, data)
