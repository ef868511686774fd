"""The look of lines, of axes, and of arrays of numbers as colored cells."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap
from tfcomp.figures.layout import scale_text

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

Band = tuple[ArrayLike, ArrayLike]
Numbers = ArrayLike | Sequence[float | None]
# Magenta stands out from all grays and all of viridis for color-blind readers
# too: orange comes close to the yellow-greens in deuteranopia.
OUTLINE_COLOR = "#ff00ff"
OUTLINE_LABEL = "held-out region"
NO_VALUE_COLOR = "0.65"
MAX_TICKS = 6
SHADE: dict[str, Any] = {"color": OUTLINE_COLOR, "alpha": 0.1, "lw": 0}
# Long labels of ticks along x.
SLANTED: dict[str, Any] = dict(rotation=45, ha="right", rotation_mode="anchor")
# Ends ((x0, y0), (x1, y1)) of a line.
Segment = tuple[tuple[float, float], tuple[float, float]]
# Round parts of a circle, as multiples of powers of ten.
_DEGREES = (1, 1.5, 3, 4.5, 6, 9, 10)


def draw_line(
    axes: Axes,
    index: int,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    label: str,
    band: Band | None = None,
) -> None:
    """Draws the line of an index and its band; NaN leaves gaps in both."""
    style = get_line_style(index)
    if len(x) > 16:  # markers would hide the line
        style.pop("marker", None)
    size = scale_text(0.8 * matplotlib.rcParams["lines.markersize"])
    axes.plot(x, y, label=label, markersize=size, **style)
    if band is not None:
        # The edge keeps the interval of a point between two gaps in sight.
        axes.fill_between(x, *band, color=style["color"], alpha=0.18, lw=1)


def choose_label(name: str, names: Collection[str]) -> str:
    """Returns the label of a line; a single line needs no legend."""
    return name if len(names) > 1 else "_nolegend_"


def get_line_style(index: int) -> dict[str, Any]:
    """Returns color, dashes and marker of a line by its index."""
    looks: dict[str, Sequence[Any]] = {
        "color": LINE_COLORS,
        "linestyle": LINE_DASHES,
        "marker": LINE_MARKERS,
    }
    cycle = matplotlib.rcParams["axes.prop_cycle"]
    if cycle != matplotlib.rcParamsDefault["axes.prop_cycle"]:
        looks |= cycle.by_key()
    return {name: each[index % len(each)] for name, each in looks.items()}


def finish_axes(axes: Axes) -> None:
    """Adds a light grid and removes the frame at the right and top."""
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["right", "top"]].set_visible(False)


def set_log_scale(
    axes: Axes, numbers: Sequence[ArrayLike], direction: str = "y"
) -> None:
    """Makes an axis logarithmic, which ends near the numbers above 0."""
    axes.set(**{f"{direction}scale": "log"})
    known = np.concatenate(
        [np.zeros(0), *(to_numbers(n).ravel() for n in numbers)]
    )
    known = known[known > 0]
    if not len(known):
        return
    limits = known.min() / 1.5, known.max() * 1.5
    axes.set(**{f"{direction}lim": limits})
    axis = axes.xaxis if direction == "x" else axes.yaxis
    if limits[1] / limits[0] < 60:  # powers of ten alone are too few
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def to_numbers(values: Numbers | None) -> NDArray[np.float64]:
    """Converts values to float, with NaN for None and infinity."""
    numbers = np.asarray(values, float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def compute_outline(mask: ArrayLike) -> list[Segment]:
    """Returns the segments around the cells `[nx, ny]` that are True."""
    padded = np.pad(np.asarray(mask, bool), 1)
    along_y = np.diff(padded, axis=0)[:, 1:-1]  # [nx + 1, ny]
    along_x = np.diff(padded, axis=1)[1:-1].T  # [ny + 1, nx]
    upright = [((x, y0), (x, y1)) for x, y0, y1 in find_runs(along_y)]
    return upright + [((x0, y), (x1, y)) for y, x0, x1 in find_runs(along_x)]


def draw_outline(axes: Axes, mask: ArrayLike, linewidth: float = 1.8) -> None:
    """Draws `compute_outline` on axes that count the cells from 0."""
    lines = LineCollection(
        compute_outline(mask),
        colors=OUTLINE_COLOR,
        linewidths=linewidth,
        capstyle="projecting",  # closes the corners
        label=OUTLINE_LABEL,
        # Half of a line along the end of the grid lies outside of the axes.
        clip_on=False,
        zorder=3,
        in_layout=False,
    )
    axes.add_collection(lines, autolim=False)


def shade_interval(axes: Axes, low: float, high: float) -> None:
    """Shades the values of x that were held out."""
    axes.axvspan(low, high, label=OUTLINE_LABEL, **SHADE)


def find_runs(edges: NDArray[np.bool_]) -> list[tuple[float, float, float]]:
    """Finds runs of True in `[lines, cells]`: (line, start, stop)."""
    changes = np.diff(np.pad(edges, ((0, 0), (1, 1))), axis=1)
    lines, places = np.nonzero(changes)  # a start and a stop in turn
    runs = np.stack([lines[::2], places[::2], places[1::2]], axis=1) - 0.5
    return [tuple(run) for run in runs.tolist()]


def show_cells(
    axes: Axes,
    values: np.ndarray,
    norm: Normalize | None = None,
    cmap: str | None = None,  # of rcParams
    no_value_color: str = NO_VALUE_COLOR,
    aspect: float = 1.0,
) -> AxesImage:
    """Shows cells, counted from 0; `aspect` is their height over width."""
    colors = matplotlib.colormaps[cmap or matplotlib.rcParams["image.cmap"]]
    return axes.imshow(
        np.ma.masked_invalid(values),
        origin="lower",
        cmap=colors.with_extremes(bad=no_value_color),
        norm=norm,
        aspect=aspect,
        interpolation="nearest",
    )


def show_map(
    axes: Axes,
    found: GridMap,
    norm: Normalize | None = None,
    linewidth: float = 1.8,
    cmap: str | None = None,
) -> AxesImage:
    """Shows a map of two factors, with their values at its axes."""
    num_x, num_y = found.values.shape
    aspect = num_x / num_y / get_map_aspect(found.values.shape)
    image = show_cells(axes, found.values.T, norm, cmap, aspect=aspect)
    label_values(axes.xaxis, found.factors[0])
    label_values(axes.yaxis, found.factors[1])
    if found.mask is not None:
        draw_outline(axes, found.mask, linewidth)
    if found.factors[1].name in found.downward:
        axes.invert_yaxis()
    return image


def get_map_aspect(shape: tuple[int, int]) -> float:
    """Returns width over height of a map of `(nx, ny)` cells."""
    return min(2.5, max(0.7, shape[0] / shape[1]))


def label_values(axis: Axis, factor: Factor) -> None:
    """Labels an axis, on which cells count from 0, with values or names."""
    places, labels = _choose_ticks(factor)
    is_long = isinstance(axis, XAxis) and sum(map(len, labels)) > 26
    axis.set_ticks(places, labels, **(SLANTED if is_long else {}))


def _choose_ticks(factor: Factor) -> tuple[np.ndarray, list[str]]:
    values = factor.values()
    is_few = len(values) <= MAX_TICKS
    if is_few or factor.names or factor.levels or factor.categorical:
        most = 10 if factor.names else MAX_TICKS
        shown = np.arange(0, len(values), math.ceil(len(values) / most))
        return shown, [factor.describe(values[place]) for place in shown]
    steps = _DEGREES if factor.unit == "degrees" else (1, 2, 2.5, 5, 10)
    is_whole = np.array_equal(values, np.round(values))
    locator = MaxNLocator(MAX_TICKS - 1, steps=steps, integer=is_whole)
    numbers = np.asarray(locator.tick_values(values[0], values[-1]))
    places = (numbers - factor.low) / factor.step
    is_inside = (places > -0.5) & (places < len(values) - 0.5)
    return places[is_inside], [f"{n:g}" for n in numbers[is_inside].round(9)]
