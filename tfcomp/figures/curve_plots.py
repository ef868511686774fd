"""Lines of numbers over a number, or over the stages of models.

Lines are a table with a row for each point: its `panel`, `line`, `x` or
`stage`, and `mean`, with the ends `low` and `high` of an interval if known.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from tfcomp.figures import layout
from tfcomp.figures.exhibits import Plot

# Okabe and Ito's colors, which differ for color-blind readers, the darkest
# first; their yellow is too faint for a line.
LINE_COLORS = "#0072b2 #d55e00 #009e73 #cc79a7 #000000 #56b4e9 #e69f00".split()
# Users' `axes.prop_cycle` takes their place.
# In print without color the dashes and the markers tell the lines apart. The
# lengths of the three tables share no divisor: the looks repeat after 280.
LINE_DASHES = (
    "-",
    (0, (5, 2)),
    (0, (1.2, 1.4)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
LINE_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Magenta stands out from all grays and all of viridis for color-blind readers
# too: orange comes close to the yellow-greens in deuteranopia.
OUTLINE_COLOR = "#ff00ff"
OUTLINE_LABEL = "held-out region"
# Long labels of ticks along x.
SLANTED: dict[str, Any] = dict(rotation=45, ha="right", rotation_mode="anchor")
MAX_MARKERS = 16  # of a line; more would hide it
_PANEL_WIDTH = 3.4  # inches


def join_curves(
    curves: Mapping[tuple[str, str], pd.DataFrame], x: str = "x"
) -> pd.DataFrame:
    """Joins curves to one table.

    Args:
        curves: By panel and line, a table whose index has the places, with the
            column `mean`, and `low` and `high` of intervals.
        x: Name of the column of places, `x` or `stage`.
    """
    table = pd.concat(curves).rename_axis(["panel", "line", x]).reset_index()
    ends = [end for end in ("low", "high") if end in table]
    numbers = table[["mean", *ends]].astype(float)
    table[["mean", *ends]] = numbers.where(np.isfinite(numbers))
    unknown = [end for end in ends if table[end].isna().all()]
    return table.drop(columns=unknown)


def draw_curves(
    table: pd.DataFrame,
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    logy: bool = False,
    shaded: tuple[float, float] | None = None,
) -> Plot:
    """Draws the columns of a table over its index; `shaded` was held out."""
    curves = {
        (ylabel, str(name)): column.to_frame("mean")
        for name, column in table.items()
    }
    points = join_curves(curves)
    figure = layout.make_figure((5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    _draw_lines(axes, points, list(map(str, table)), logy)
    if shaded is not None:
        shade_interval(axes, *shaded)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return layout.finish_figure(figure, title, lambda: points)


def draw_curve_panels(
    table: pd.DataFrame,
    *,
    xlabel: str,
    log: Collection[str] = (),
    floors: Mapping[str, float] | None = None,
) -> Plot:
    """Draws curves with bands, a panel for each quantity, from `floors` up."""
    panels = list(table["panel"].unique())
    lines = list(table["line"].unique())
    size = (_PANEL_WIDTH * len(panels) + 0.4, 3.2)
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_lines(axes, table[table["panel"] == panel], lines, panel in log)
        if floors and panel in floors:
            floor = floors[panel]
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, floor), max(high, floor + 1))
        axes.set_xlabel(xlabel)
        layout.add_panel_title(axes, panel, _PANEL_WIDTH)
    return layout.finish_figure(figure, "", lambda: table)


def draw_stage_panels(
    table: pd.DataFrame,
    *,
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Plot:
    """Draws curves over stages, which are merged to one axis."""
    panels = list(table["panel"].unique())
    lines = list(table["line"].unique())
    curves = table.groupby(["panel", "line"], sort=False)["stage"]
    stages = merge_stages([list(curve) for _, curve in curves])
    x = curves.transform(lambda curve: find_places(list(curve), stages))
    points = table.assign(x=x)

    height = 2.6  # inches
    width = max(1.3 * height, 0.36 * len(stages))
    letters_per_stage = 10 * width / len(stages)  # ten letters an inch
    is_crowded = max(map(len, stages)) + 1 > letters_per_stage
    size = (len(panels) * width + 1.0, height + 0.6)
    figure = layout.make_figure(size, layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_lines(axes, points[points["panel"] == panel], lines)
        layout.add_panel_title(axes, panel, width)
        look = SLANTED if is_crowded else {}
        axes.set_xticks(range(len(stages)), stages, **look)
        axes.set_xlim(-0.4, len(stages) - 0.6)
    grid[0].set_ylabel(ylabel)
    if limits:
        low, high = limits
        margin = 0.03 * (high - low)
        grid[0].set_ylim(low - margin, high + margin)
    return layout.finish_figure(figure, "", lambda: table)


def _draw_lines(
    axes: Axes, points: pd.DataFrame, names: Sequence[str], is_log: bool = False
) -> None:
    """Draws lines that look as their place among the names says."""
    if (points["x"] % 1 == 0).all():
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    size = layout.scale_text(0.8 * matplotlib.rcParams["lines.markersize"])
    for name, rows in points.groupby("line", sort=False):
        x = rows["x"].to_numpy(float)
        mean = rows["mean"].to_numpy(float)
        if is_log:
            mean = np.where(mean > 0, mean, np.nan)
        style = get_line_style(names.index(str(name)))
        if len(x) > MAX_MARKERS:
            style.pop("marker", None)
        # A single line needs no legend.
        label = str(name) if len(names) > 1 else "_nolegend_"
        axes.plot(x, mean, label=label, markersize=size, **style)
        if "high" in rows and rows["high"].notna().any():
            low = rows["low"].to_numpy(float)
            if is_log:
                low = np.where(low > 0, low, np.finfo(float).tiny)
            # The edge keeps the interval of a point between gaps in sight.
            axes.fill_between(
                x, low, rows["high"], lw=1, color=style["color"], alpha=0.18
            )
    if is_log:
        set_log_scale(axes, points["mean"])
    finish_axes(axes)


def merge_stages(lists: Sequence[Sequence[str]]) -> list[str]:
    """Merges stages; one of a shorter list goes before its successor.

    Where models have them in another order, some are there twice.
    """
    merged: list[str] = []
    for stages in sorted(lists, key=len, reverse=True):  # stable
        place = len(merged)
        for stage in reversed(stages):
            if stage in merged[:place]:
                place -= 1 + merged[:place][::-1].index(stage)
            else:
                merged.insert(place, stage)
    return merged


def find_places(stages: Sequence[str], merged: Sequence[str]) -> list[int]:
    """Returns rising places of stages among merged ones."""
    places: list[int] = []
    start = 0
    for stage in stages:
        places.append(merged.index(stage, start))
        start = places[-1] + 1
    return places


def get_line_style(index: int) -> dict[str, Any]:
    """Returns color, dashes and marker of a line by its index."""
    looks: dict[str, Sequence[Any]] = {
        "color": LINE_COLORS,
        "linestyle": LINE_DASHES,
        "marker": LINE_MARKERS,
    }
    cycle = matplotlib.rcParams["axes.prop_cycle"]
    if cycle != matplotlib.rcParamsDefault["axes.prop_cycle"]:
        looks.update(cycle.by_key())
    return {name: each[index % len(each)] for name, each in looks.items()}


def finish_axes(axes: Axes) -> None:
    """Adds a light grid and removes the frame at the right and top."""
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["right", "top"]].set_visible(False)


def set_log_scale(axes: Axes, numbers: pd.Series, direction: str = "y") -> None:
    """Makes an axis logarithmic, which ends near the numbers above 0."""
    axes.set(**{f"{direction}scale": "log"})
    positive = numbers[(numbers > 0) & np.isfinite(numbers)]
    if positive.empty:
        return
    low = positive.min() / 1.5
    high = positive.max() * 1.5
    axes.set(**{f"{direction}lim": (low, high)})
    axis = axes.xaxis if direction == "x" else axes.yaxis
    if high / low < 60:  # powers of ten alone are too few
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def shade_interval(axes: Axes, low: float, high: float) -> None:
    """Shades the values of x that were held out."""
    axes.axvspan(
        low, high, label=OUTLINE_LABEL, color=OUTLINE_COLOR, alpha=0.1, lw=0
    )
