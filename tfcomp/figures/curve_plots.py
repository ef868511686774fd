"""Curves of numbers over a number, and the look of all lines."""

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from tfcomp.figures.layout import add_title
from tfcomp.figures.layout import settle_layout
from tfcomp.figures.outline import OUTLINE_COLOR
from tfcomp.figures.outline import OUTLINE_LABEL

# Okabe and Ito's colours, which differ for colour-blind readers, the darkest
# first; their yellow is too faint for a line.
LINE_COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#000000",
    "#56b4e9",
    "#e69f00",
)
# In print without colour the dashes and the markers tell the lines apart. The
# lengths of the three tables share no divisor: the looks repeat after 280.
LINE_DASHES = (
    "-",
    (0, (5, 2)),
    (0, (1.2, 1.4)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
LINE_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

Band = tuple[ArrayLike, ArrayLike]

# More points than this are drawn without markers, which would hide the line.
_MAX_MARKERS = 16


def draw_curves(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    logx: bool = False,
    logy: bool = False,
    shaded: tuple[float, float] | None = None,
    bands: Mapping[str, Band] | None = None,
) -> Figure:
    """Draws curves over one variable in one pair of axes.

    Args:
        x: Where the curves are known, `[n]`, finite; above 0 for `logx`.
        series: Name of a curve to its numbers, `[n]`. A number that is not
            finite leaves a gap; for `logy`, so does one that is not above 0.
        xlabel: What x is, with units.
        ylabel: What the numbers are, with units.
        title: Title of the figure.
        logx: Whether the scale of x is logarithmic.
        logy: Whether the scale of the numbers is logarithmic.
        shaded: Ends of the interval of x that was held out from training.
        bands: Name of a curve to the lower and the upper end of its interval,
            `[n]` each.

    Returns:
        The figure.
    """
    x = np.asarray(x, float)
    curves = {name: to_numbers(y) for name, y in series.items()}
    bands = {
        name: (to_numbers(low), to_numbers(high))
        for name, (low, high) in (bands or {}).items()
    }
    _check_curves(x, curves, bands, logx)
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log" if logx else "linear")
    axes.set_yscale("log" if logy else "linear")
    has_markers = len(x) <= _MAX_MARKERS
    for index, (name, y) in enumerate(curves.items()):
        y = np.where(y > 0, y, np.nan) if logy else y
        draw_line(axes, index, x, y, name, bands.get(name), has_markers)
    if shaded is not None:
        _shade(axes, shaded)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    finish_axes(axes)
    add_title(figure, title)
    add_line_legend(figure)
    settle_layout(figure)
    return figure


def draw_line(
    axes: Axes,
    index: int,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    label: str,
    band: Band | None = None,
    has_markers: bool = True,
) -> None:
    """Draws one line, and the band of its intervals below it.

    Args:
        axes: Where to draw.
        index: Number of the line, which sets its look.
        x: Places of the points, `[n]`.
        y: Numbers, `[n]`; NaN leaves a gap.
        label: Name in the legend.
        band: Lower and upper ends of the intervals, `[n]` each, if any; NaN
            leaves a gap.
        has_markers: Whether every point has a marker.
    """
    style = get_line_style(index)
    if not has_markers:
        del style["marker"]
    axes.plot(x, y, label=label, linewidth=1.6, markersize=5, **style)
    if band is not None:
        # The edge keeps the interval of a point between two gaps in sight.
        axes.fill_between(
            x, *band, color=style["color"], alpha=0.18, linewidth=1
        )


def get_line_style(index: int) -> dict[str, Any]:
    """Returns colour, dashes and marker of the line of a number from 0."""
    return {
        "color": LINE_COLORS[index % len(LINE_COLORS)],
        "linestyle": LINE_DASHES[index % len(LINE_DASHES)],
        "marker": LINE_MARKERS[index % len(LINE_MARKERS)],
    }


def finish_axes(axes: Axes) -> None:
    """Gives axes of lines a light grid and no frame at the right and top."""
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["right", "top"]].set_visible(False)


def add_line_legend(figure: Figure) -> None:
    """Names below a figure all its lines, every label once.

    The figure grows by the height of the legend, which has as many columns as
    fit in, so that the axes keep their size.

    Args:
        figure: The figure, before its layout is settled.
    """
    width = figure.get_figwidth()
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(
            *axes.get_legend_handles_labels(), strict=True
        ):
            # Ten letters an inch, and the sample of the line.
            text = textwrap.fill(label, max(1, int((width - 0.7) * 10)))
            handles.setdefault(text, handle)
    if not handles:
        return
    longest = max(len(line) for text in handles for line in text.split("\n"))
    max_columns = max(1, int(width / (longest / 10 + 0.8)))
    num_rows = math.ceil(len(handles) / max_columns)
    figure.legend(
        handles=list(handles.values()),
        labels=list(handles),
        loc="outside lower center",
        ncols=math.ceil(len(handles) / num_rows),
        frameon=False,
        handlelength=3.2,  # one period of the longest dashes
    )
    num_lines = num_rows * max(text.count("\n") + 1 for text in handles)
    figure.set_figheight(figure.get_figheight() + 0.2 * num_lines + 0.1)


def to_numbers(values: ArrayLike) -> NDArray[np.float64]:
    """Returns values as float, NaN where they are None or infinite."""
    values = np.asarray(values, float)
    return np.where(np.isfinite(values), values, np.nan)


def _shade(axes: Axes, interval: tuple[float, float]) -> None:
    low, high = interval
    if not low < high:
        raise ValueError(
            f"shaded must be a pair (low, high), low < high, received "
            f"{interval}."
        )
    axes.axvspan(
        low, high, color=OUTLINE_COLOR, alpha=0.1, lw=0, label=OUTLINE_LABEL
    )


def _check_curves(
    x: np.ndarray,
    curves: Mapping[str, np.ndarray],
    bands: Mapping[str, tuple[np.ndarray, np.ndarray]],
    logx: bool,
) -> None:
    if not curves:
        raise ValueError("series must have at least one entry, received none.")
    shapes = {"x": x.shape}
    shapes |= {f"series {name!r}": y.shape for name, y in curves.items()}
    for name, (low, high) in bands.items():
        if name not in curves:
            raise ValueError(
                f"bands must name series {list(curves)}, received {name!r}."
            )
        shapes[f"low of {name!r}"] = low.shape
        shapes[f"high of {name!r}"] = high.shape
    if len(set(shapes.values())) > 1 or x.ndim != 1:
        raise ValueError(
            "x, all series and all ends of bands must have the same shape "
            f"[n], received {shapes}."
        )
    if not np.isfinite(x).all() or (logx and x.min(initial=1) <= 0):
        rule = "finite and above 0 on a logarithmic scale" if logx else "finite"
        raise ValueError(f"x must be {rule}, received {x}.")
