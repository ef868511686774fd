"""Line plots, and forest plots: scores as seeds, means and intervals.

Lines are means over seeds. *Curves* are their numbers: for each panel and line
a table with a row for each seed, and a column for each place (x, or a stage).
Forest plots have a row for each setting, in which its scores lie along x, and a
panel for each score.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from tfcomp.figures import exhibits
from tfcomp.figures.exhibits import Plot
from tfcomp.metrics.registry import label_number
from tfcomp.statistics.limits import REAL, Limits
from tfcomp.statistics.seed_statistics import Statistics, estimate_mean

if TYPE_CHECKING:
    import pandas as pd

    Curves = Mapping[tuple[str, str], pd.DataFrame]

# Okabe and Ito's colors, which differ for color-blind readers, the darkest
# first; their yellow is too faint for a line. Users' `axes.prop_cycle` takes
# their place.
LINE_COLORS = "#0072b2 #d55e00 #009e73 #cc79a7 #000000 #56b4e9 #e69f00".split()
# In print without color the dashes and the markers tell the lines apart. The
# lengths of the three tables (7, 5, 8) share no divisor: the looks repeat after
# 280 lines.
LINE_DASHES = ("-", "--", ":", "-.", (0, (3, 1, 1, 1, 1, 1)))
LINE_MARKERS = "os^DvPX*"
# Magenta stands out from all grays and all of viridis for color-blind readers
# too: orange comes close to the yellow-greens in deuteranopia.
OUTLINE_COLOR = "#ff00ff"
OUTLINE_LABEL = "held-out region"
# Arguments for long labels of ticks along x.
SLANTED: dict[str, Any] = {
    "rotation": 45,
    "ha": "right",
    "rotation_mode": "anchor",
}
MAX_MARKERS = 16  # of a line; more would hide it
# Intervals may widen the axis of their means by this share on either side.
MAX_WIDENING = 0.25
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
TFCOMP_STAGE = re.compile(r"code|image|stage_\d+")
# In inches: a panel of curves, a panel of stages, and a row of a forest.
PANEL_WIDTH = 3.4
STAGE_HEIGHT = 2.6
ROW_HEIGHT = 0.30
# Predictors without a network: their label and dashes.
BASELINES = {
    "additive": ("baseline: additive", "--"),
    "nearest": ("baseline: nearest training image", ":"),
}


def average_seeds(
    values: Mapping[Any, float | None],
    limits: Limits,
    estimate: Callable[..., Statistics | None] = estimate_mean,
) -> dict[str, float]:
    """Averages seeds, with the ends of the 95 % interval.

    Args:
        values: A number by seed.
        limits: Its range.
        estimate: Averages, as `estimate_geometric` does.

    Returns:
        `mean`, `low` and `high`; NaN where one is unknown.
    """
    result = estimate(values, limits)
    numbers = {}
    for name in ("mean", "low", "high"):
        number = getattr(result, name, None)
        numbers[name] = math.nan if number is None else number
    return numbers


def tabulate_curves(
    curves: Curves,
    limits: Limits = REAL,
    x: str = "x",
) -> pd.DataFrame:
    """Averages curves over seeds.

    Args:
        curves: Numbers by seed and place, by panel and line.
        limits: The range of the numbers.
        x: The column of the places, `x` or `stage`.

    Returns:
        A row for each point: `panel`, `line`, the place, the `mean`, and the
        ends `low` and `high` of the interval if any line has one. Numbers that
        are not finite are NaN.
    """
    import pandas as pd  # here: training needs none

    lines = {}
    for line, seeds in curves.items():
        points = {}
        for place, values in seeds.items():
            points[place] = average_seeds(values.to_dict(), limits)
        lines[line] = pd.DataFrame(points).T
    table = pd.concat(lines).rename_axis(["panel", "line", x])
    finite = table.where(np.isfinite(table))
    ends = finite[["low", "high"]].dropna(axis="columns", how="all")
    return finite[["mean"]].join(ends).reset_index()


def draw_curves(
    table: pd.DataFrame,
    *,
    xlabel: str,
    ylabel: str,
    shaded: tuple[float, float] | None = None,
) -> Plot:
    """Draws the columns of a table over its index, from 0 if none is below.

    Args:
        table: A column for each line.
        xlabel: The label of the index.
        ylabel: The label of the numbers.
        shaded: Ends of the interval of the index that was held out.
    """
    curves = {}
    for name in table:
        curves[ylabel, str(name)] = table[[name]].T
    points = tabulate_curves(curves)

    figure = exhibits.make_figure((5.6, 3.6))
    axes = figure.subplots()
    _draw_lines(axes, points, [str(name) for name in table])
    _, highest = axes.get_ylim()
    if axes.dataLim.ymin >= 0 and highest > 0:
        axes.set_ylim(0, highest)
    if shaded is not None:
        shade_interval(axes, *shaded)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return exhibits.finish_figure(figure, "", lambda: points)


def draw_curve_panels(
    curves: Curves,
    *,
    xlabel: str,
    limits: Limits = REAL,
    log: Collection[str] = (),
) -> Plot:
    """Draws curves with bands, a panel for each quantity.

    Args:
        curves: Numbers by seed and x, by panel and line.
        xlabel: The label of x.
        limits: The range of the numbers.
        log: The panels with logarithmic axes.
    """
    table = tabulate_curves(curves, limits)
    num_panels = table["panel"].nunique()
    width = PANEL_WIDTH * num_panels + 0.4
    figure, row = exhibits.make_row((width, 3.2), num_panels)
    _draw_panels(row, table, curves, PANEL_WIDTH, log)
    panels = table.groupby("panel", sort=False)
    for axes, (panel, points) in zip(row, panels, strict=True):
        if panel not in log:
            _limit_axis(axes, points)
        axes.set_xlabel(xlabel)
    return exhibits.finish_figure(figure, "", lambda: table)


def _draw_panels(
    row: Sequence[Axes],
    points: pd.DataFrame,
    curves: Curves,
    width: float,
    log: Collection[str] = (),
) -> None:
    """Draws lines, seeds and titles of panels.

    Args:
        row: The panels.
        points: The points of all lines, with `x`.
        curves: The numbers of seeds by x.
        width: The width of a panel in inches.
        log: The panels with logarithmic axes.
    """
    lines = list(points["line"].unique())
    panels = points.groupby("panel", sort=False)
    for axes, (panel, panel_points) in zip(row, panels, strict=True):
        _draw_lines(axes, panel_points, lines, panel in log)
        for (place, line), seeds in curves.items():
            if place == panel and len(seeds) > 1:
                style = get_line_style(lines.index(line))
                _draw_seeds(axes, seeds, style["color"])
        exhibits.add_panel_title(axes, str(panel), width)


def draw_coverage(
    table: pd.DataFrame,
    seeds: pd.DataFrame,
    ylabel: str,
    is_log: bool,
) -> Plot:
    """Draws a score over the coverage of combinations in training.

    Args:
        table: A result of `tfcomp.coverage_table`: a row for each line and
            coverage, with the score, the predictors and the bound.
        seeds: A row for each run, with `label`, `coverage` and `value`.
        ylabel: The name of the score.
        is_log: Whether the score has a logarithmic axis.
    """
    figure = exhibits.make_figure((6.0, 4.0))
    axes = figure.subplots()
    labels = table["line"] + ": " + table["answer"]
    points = table.assign(line=labels, x=table["coverage"])
    lines = list(labels.unique())
    # Splits are the same for all lines, and so are predictors and bounds.
    first = points[points["line"] == lines[0]]
    # With a second name even a single line has a label in the legend.
    _draw_lines(axes, points, [*lines, ""], is_log)
    for name, (label, dashes) in BASELINES.items():
        if first[name].notna().any():
            axes.plot(first["x"], first[name], dashes, color="0.4", label=label)

    for number, (_, runs) in enumerate(seeds.groupby("label", sort=False)):
        color = get_line_style(number)["color"]
        axes.plot(runs["coverage"], runs["value"], ".", color=color)
    bound = first["bound"].iloc[0]
    axes.axhline(bound, color="0.7", label=f"bound {bound:g}")
    axes.axvline(first["all_determined"].iloc[0], color="0.7", ls="-.")
    axes.set(xlabel="share of combinations in training", ylabel=ylabel)
    return exhibits.finish_figure(figure, "", lambda: table)


def draw_stage_panels(
    curves: Curves,
    *,
    ylabel: str,
    limits: Limits = REAL,
    ylim: tuple[float, float] | None = None,
) -> Plot:
    """Draws curves over stages.

    Lines of different models have different stages, which `merge_stages` puts
    on one axis.

    Args:
        curves: Numbers by seed and stage, by panel and line.
        ylabel: The label of the numbers.
        limits: The range of the numbers.
        ylim: The ends of their axis, if they are fixed.
    """
    table = tabulate_curves(curves, limits, "stage")
    stages = merge_stages([list(map(str, seeds)) for seeds in curves.values()])
    points = table.assign(x=table["stage"].map(stages.index))
    placed = {}
    for line, seeds in curves.items():
        placed[line] = seeds.rename(columns=stages.index)
    labels, xlabel, style = _label_stages(stages)

    num_stages = len(stages)
    num_panels = table["panel"].nunique()
    width = max(1.3 * STAGE_HEIGHT, 0.36 * num_stages)
    figure, row = exhibits.make_row(
        size=(num_panels * width + 1.0, STAGE_HEIGHT + 0.6),
        count=num_panels,
        sharey=True,
    )
    _draw_panels(row, points, placed, width)
    for axes in row:
        axes.set_xticks(range(num_stages), labels, **style)
        axes.set_xlabel(xlabel)
        axes.set_xlim(-0.4, num_stages - 0.6)
    row[0].set_ylabel(ylabel)

    if ylim is not None:
        low, high = ylim
        margin = 0.03 * (high - low)
        row[0].set_ylim(low - margin, high + margin)
    else:
        _limit_axis(row[0], points)
    return exhibits.finish_figure(figure, "", lambda: table)


def _label_stages(
    stages: Sequence[str],
) -> tuple[list[str], str, dict[str, Any]]:
    """Labels an axis of stages: numbers, or names of layers of other models.

    Args:
        stages: Names of stages, in order.

    Returns:
        Labels of the ticks, the label of the axis, and how ticks are written.
    """
    if not all(map(TFCOMP_STAGE.fullmatch, stages)):
        return list(stages), "", SLANTED
    labels = [stage.removeprefix("stage_") for stage in stages]
    return labels, "stage", {}


def title_stage(stage: str) -> str:
    """Writes the name of a stage in words: `stage_0` becomes `stage 0`.

    Args:
        stage: The name; names of other models' layers stay as they are.
    """
    if TFCOMP_STAGE.fullmatch(stage):
        return stage.replace("_", " ")
    return stage


def merge_stages(lists: Collection[Sequence[str]]) -> list[str]:
    """Merges lists of stages into one.

    The longest list is the base. A stage that it lacks goes right before the
    stage that follows in the shorter list: `abd` and `acd` become `abcd`.

    Args:
        lists: The stages of each line; stages that lists have in common are
            assumed to be in the same order.
    """
    merged: list[str] = []
    for stages in sorted(lists, key=len, reverse=True):  # stable
        place = len(merged)
        # Backwards, so that the successor of each stage is in its place.
        for stage in reversed(stages):
            if stage in merged:
                place = merged.index(stage)
            else:
                merged.insert(place, stage)
    return merged


def _draw_lines(
    axes: Axes,
    points: pd.DataFrame,
    names: Sequence[str],
    is_log: bool = False,
) -> None:
    """Draws the lines of one panel.

    Args:
        axes: The panel.
        points: The points of its lines, as by `tabulate_curves`, with `x`.
        names: Lines of all panels; a line has the style of its index here, so
            that it looks the same in every panel.
        is_log: Whether the numbers have a logarithmic axis.
    """
    is_integer = points["x"] % 1 == 0
    if is_integer.all():
        locator = MaxNLocator(integer=True)
        axes.xaxis.set_major_locator(locator)
    # The lowest number that the axis can show.
    lowest = -np.inf
    if is_log:
        lowest = np.finfo(float).tiny
    markersize = matplotlib.rcParams["lines.markersize"]
    size = exhibits.scale_text(0.8 * markersize)

    for name, rows in points.groupby("line", sort=False):
        line = str(name)
        x = rows["x"]
        mean = rows["mean"]
        mean = mean.where(mean >= lowest)
        style = get_line_style(names.index(line))
        if len(x) > MAX_MARKERS:
            del style["marker"]
        label = line
        if len(names) == 1:  # it needs no legend
            label = "_nolegend_"
        axes.plot(
            x,
            mean,
            label=label,
            markersize=size,
            **style,
        )
        _fill_interval(axes, rows, lowest, style["color"])
    if is_log:
        set_log_scale(axes, points["mean"])
    finish_axes(axes)


def _fill_interval(
    axes: Axes,
    rows: pd.DataFrame,
    lowest: float,
    color: str,
) -> None:
    """Fills the interval of a line, if it has one.

    Args:
        axes: The panel.
        rows: The points of the line.
        lowest: The lowest number that the axis can show.
        color: The color of the line.
    """
    if "high" not in rows or rows["high"].isna().all():
        return
    axes.fill_between(
        rows["x"],
        rows["low"].clip(lowest),
        rows["high"],
        # The edge keeps in sight the interval of a point without neighbors.
        lw=0.6,
        color=color,
        alpha=0.14,
    )


def _draw_seeds(axes: Axes, seeds: pd.DataFrame, color: str) -> None:
    """Draws a thin line for each seed, which leaves the limits of the axis.

    Args:
        axes: The panel.
        seeds: Numbers by seed and x.
        color: The color of the mean.
    """
    limits = axes.get_ylim()
    for numbers in seeds.to_numpy():
        axes.plot(
            seeds.columns,
            numbers,
            color=color,
            lw=exhibits.scale_text(0.7),
            alpha=0.35,
            zorder=1.5,
        )
    axes.set_ylim(limits)


def _limit_axis(axes: Axes, points: pd.DataFrame) -> None:
    """Ends the y axis near the means, where it cuts wide intervals.

    Args:
        axes: The panel, or one of those that share the axis.
        points: Its points, as by `tabulate_curves`.
    """
    means = points["mean"]
    lowest = means.min()
    highest = means.max()
    room = MAX_WIDENING * (highest - lowest)
    if not room > 0:
        return

    low = lowest
    high = highest
    if "high" in points:
        low = min(low, max(points["low"].min(), lowest - room))
        high = max(high, min(points["high"].max(), highest + room))
    margin = axes.get_ymargin() * (high - low)
    axes.set_ylim(low - margin, high + margin)


def get_line_style(index: int) -> dict[str, Any]:
    """Returns the arguments `color`, `linestyle` and `marker` of a line.

    Args:
        index: The index of the line among all lines of a figure.
    """
    looks: dict[str, Sequence[Any]] = {
        "color": LINE_COLORS,
        "linestyle": LINE_DASHES,
        "marker": LINE_MARKERS,
    }
    cycle = matplotlib.rcParams["axes.prop_cycle"]
    default = matplotlib.rcParamsDefault["axes.prop_cycle"]
    if cycle != default:
        looks.update(cycle.by_key())

    style = {}
    for name, choices in looks.items():
        place = index % len(choices)
        style[name] = choices[place]
    return style


def finish_axes(axes: Axes) -> None:
    """Adds a light grid and removes the frame at the right and top."""
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    frame = axes.spines[["right", "top"]]
    frame.set_visible(False)


def set_log_scale(axes: Axes, numbers: pd.Series, direction: str = "y") -> None:
    """Makes an axis logarithmic, and ends it near the numbers above 0.

    Args:
        axes: The axes.
        numbers: The numbers that are to be seen.
        direction: `x` or `y`.
    """
    axes.set(**{f"{direction}scale": "log"})
    is_drawn = (numbers > 0) & np.isfinite(numbers)
    positive = numbers[is_drawn]
    axis: Axis = axes.yaxis
    if direction == "x":
        axis = axes.xaxis
    axis.set_major_formatter(FuncFormatter(_format_power))
    axis.set_minor_formatter(NullFormatter())
    if positive.empty:
        return
    # A margin that is the same on both sides in log scale.
    low = positive.min() / 1.5
    high = positive.max() * 1.5
    axes.set(**{f"{direction}lim": (low, high)})
    if high / low < 60:  # powers of ten would be one or two ticks
        locator = LogLocator(subs=(1, 2, 5))
        axis.set_major_locator(locator)


def _format_power(number: float, _: Any = None) -> str:
    """Formats a tick of a logarithmic axis: `0.01`, `10⁻⁶`, `2·10⁻⁶`."""
    if number <= 0 or 0.001 <= number < 10_000:
        return f"{number:g}"
    exponent = math.floor(math.log10(number) + 1e-9)
    factor = number / 10.0**exponent
    power = "10" + str(exponent).translate(SUPERSCRIPTS)
    if round(factor) == 1:
        return power
    return f"{factor:.3g}·{power}"


def shade_interval(axes: Axes, low: float, high: float) -> None:
    """Shades the values of x that were held out.

    Args:
        axes: The axes.
        low: The smallest of these values.
        high: The largest.
    """
    axes.axvspan(
        low,
        high,
        label=OUTLINE_LABEL,
        color=OUTLINE_COLOR,
        alpha=0.1,
        lw=0,
    )


def list_marks(
    panel: str,
    row: str,
    seeds: Sequence[float],
    mean: float,
    low: float = math.nan,
    high: float = math.nan,
) -> list[dict[str, Any]]:
    """Returns marks of a forest: seeds, and their mean with its interval.

    Args:
        panel: The score.
        row: The setting.
        seeds: The score of each seed.
        mean: Their mean.
        low: The lower end of its interval; NaN if it is unknown.
        high: The upper end.
    """
    marks: list[dict[str, Any]] = []
    for seed in seeds:
        marks.append({"mark": "seed", "value": seed})
    mean_mark = {"mark": "mean", "value": mean, "low": low, "high": high}
    marks.append(mean_mark)
    return [{"panel": panel, "row": row, **mark} for mark in marks]


def draw_forest(
    marks: Sequence[dict[str, Any]],
    log: Collection[str] = (),
    mean: str = "mean",
) -> Plot:
    """Draws seeds as dots, and means as diamonds on their intervals.

    Args:
        marks: Results of `list_marks`, joined: a panel for each score, a row
            for each setting.
        log: The panels with logarithmic axes.
        mean: The name of the means in the legend.
    """
    import pandas as pd  # here: training needs none

    types = {
        "value": float,
        "low": float,
        "high": float,
    }
    table = pd.DataFrame(marks).astype(types)
    panels = list(table["panel"].unique())
    rows = list(table["row"].unique())
    labels = [textwrap.fill(row, 34) for row in rows]
    num_panels = len(panels)
    longest = max(map(len, rows))
    # In inches: panels, labels of rows by their characters, and margins.
    width = 2.8 * num_panels + 0.085 * longest + 0.6
    height = ROW_HEIGHT * len(rows) + 1.2

    figure, panel_axes = exhibits.make_row(
        size=(width, height),
        count=num_panels,
        sharey=True,
    )
    for axes, panel in zip(panel_axes, panels, strict=True):
        is_in_panel = table["panel"] == panel
        panel_marks = table[is_in_panel]
        for row, row_marks in panel_marks.groupby("row", sort=False):
            _draw_row(
                axes,
                rows.index(row),
                row_marks,
                mean,
            )

        _label_forest(axes, label_number(panel), labels)
        if panel in log:
            is_seed = panel_marks["mark"] == "seed"
            seeds = panel_marks.loc[is_seed, "value"]
            set_log_scale(axes, seeds, direction="x")
    return exhibits.finish_figure(figure, "", lambda: table)


def _label_forest(axes: Axes, title: str, rows: Sequence[str]) -> None:
    """Writes the score below a panel, and the settings beside it.

    Args:
        axes: The panel.
        title: The score.
        rows: Labels of the settings, from top to bottom.
    """
    finish_axes(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    size = exhibits.scale_text(9)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=size)
    num_rows = len(rows)
    axes.set_yticks(range(num_rows), rows, fontsize=size)
    axes.set_ylim(num_rows - 0.5, -0.5)  # the first row is at the top
    label = textwrap.fill(title, 30)
    axes.set_xlabel(label, fontsize=size)


def _draw_row(
    axes: Axes,
    place: int,
    marks: pd.DataFrame,
    label: str,
) -> None:
    """Draws the seeds of a setting, their mean, and its interval.

    Args:
        axes: The panel.
        place: The index of the row, which is its y.
        marks: The marks of the setting, with one mean.
        label: The name of the mean in the legend.
    """
    style = get_line_style(0)
    color = style["color"]
    is_seed = marks["mark"] == "seed"
    seeds = marks.loc[is_seed, "value"]
    if len(seeds):
        # Seeds are spread over y, so that equal scores do not cover each other.
        offsets = np.linspace(-0.14, 0.14, len(seeds))
        axes.plot(
            seeds,
            place + offsets,
            "o",
            color="0.55",
            ms=exhibits.scale_text(3.5),
            label="a seed",
        )

    (mean,) = marks[~is_seed].to_dict("records")
    ends = [mean["low"], mean["high"]]
    if np.isfinite(ends).all():
        axes.plot(
            ends,
            [place, place],
            color=color,
            lw=exhibits.scale_text(2.2),
        )
    axes.plot(
        [mean["value"]],
        [place],
        "D",
        color=color,
        ms=exhibits.scale_text(6),
        label=label,
    )
