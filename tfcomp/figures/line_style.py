"""The look of lines and of the axes that they are drawn in."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's colors, which differ for color-blind readers, the darkest
# first; their yellow is too faint for a line.
LINE_COLORS = "#0072b2 #d55e00 #009e73 #cc79a7 #000000 #56b4e9 #e69f00".split()
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
        del style["marker"]
    axes.plot(x, y, label=label, linewidth=1.6, markersize=5, **style)
    if band is not None:
        # The edge keeps the interval of a point between two gaps in sight.
        axes.fill_between(x, *band, color=style["color"], alpha=0.18, lw=1)


def choose_label(name: str, names: Collection[str]) -> str:
    """Returns the label of a line; a single line needs no legend."""
    return name if len(names) > 1 else "_nolegend_"


def get_line_style(index: int) -> dict[str, Any]:
    """Returns color, dashes and marker of a line by its index."""
    return {
        "color": LINE_COLORS[index % len(LINE_COLORS)],
        "linestyle": LINE_DASHES[index % len(LINE_DASHES)],
        "marker": LINE_MARKERS[index % len(LINE_MARKERS)],
    }


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


def to_numbers(values: Numbers) -> NDArray[np.float64]:
    """Converts values to float, with NaN for None and infinity."""
    numbers = np.asarray(values, float)
    return np.where(np.isfinite(numbers), numbers, np.nan)
