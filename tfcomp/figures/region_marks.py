"""Marks of the held-out region: its outline on a map, a shade on an axis."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike, NDArray

from tfcomp.figures.argument_checks import require

Segment = tuple[tuple[float, float], tuple[float, float]]

# Magenta stands out from all grays and all of viridis for color-blind readers
# too: orange comes close to the yellow-greens in deuteranopia.
OUTLINE_COLOR = "#ff00ff"
OUTLINE_LABEL = "held-out region"


def compute_outline(mask: ArrayLike) -> list[Segment]:
    """Computes the border of a region of any shape, on the pixel edges.

    Cell `(i, j)` covers `i - 0.5 ... i + 0.5` in x and `j - 0.5 ... j + 0.5`
    in y, as in `imshow`; the inclusive interval [6, 22] spans 5.5 to 22.5.
    A region that reaches the end of the grid is closed there. The mask `[nx,
    ny]` is True inside.

    Returns:
        Segments `((x0, y0), (x1, y1))` in data coordinates, first those along
        y, then those along x. Each is as long as its line goes on.
    """
    mask = np.asarray(mask, bool)
    require(mask.ndim == 2, "mask must have shape [nx, ny]", mask.shape)
    padded = np.pad(mask, 1)
    along_y = np.diff(padded, axis=0)[:, 1:-1]  # [nx + 1, ny]
    along_x = np.diff(padded, axis=1)[1:-1].T  # [ny + 1, nx]
    segments = [((x, y0), (x, y1)) for x, y0, y1 in _find_runs(along_y)]
    segments += [((x0, y), (x1, y)) for y, x0, x1 in _find_runs(along_x)]
    return segments


def draw_outline(axes: Axes, mask: ArrayLike, linewidth: float = 1.8) -> None:
    """Draws the border of a region on axes that count the cells from 0.

    The mask `[nx, ny]` is True inside; the line is that many points wide.
    """
    lines = LineCollection(
        compute_outline(mask),
        colors=OUTLINE_COLOR,
        linewidths=linewidth,
        capstyle="projecting",  # closes the corners
        label=OUTLINE_LABEL,
        # Half of a line along the end of the grid lies outside of the axes.
        clip_on=False,
        zorder=3,
    )
    axes.add_collection(lines, autolim=False)


def shade_interval(axes: Axes, low: float, high: float) -> None:
    """Shades the values of x that were held out."""
    rule = "The shaded interval must have low < high"
    require(low < high, rule, f"{low}, {high}")
    look = {"color": OUTLINE_COLOR, "alpha": 0.1, "lw": 0}
    axes.axvspan(low, high, label=OUTLINE_LABEL, **look)


def shade_values(axes: Axes, is_held_out: ArrayLike) -> None:
    """Shades the values of one factor that occur in the held-out region.

    On axes whose x counts them from 0. Where all of them do, as in a diagonal
    band or a cross, that would mark nothing, and nothing is drawn.
    """
    is_held_out = np.asarray(is_held_out, bool)
    if is_held_out.all():
        return
    for _, start, stop in _find_runs(is_held_out[np.newaxis]):
        shade_interval(axes, start, stop)


def _find_runs(edges: NDArray[np.bool_]) -> list[tuple[float, float, float]]:
    """Joins neighboring edges, True in `[lines, cells]`, to runs.

    A run is (position of the line, start, stop).
    """
    steps = np.diff(np.pad(edges, ((0, 0), (1, 1))).astype(int), axis=1)
    lines, starts = np.nonzero(steps == 1)  # row by row, as are the stops
    stops = np.nonzero(steps == -1)[1]
    runs = np.stack([lines, starts, stops], axis=1) - 0.5  # [runs, 3]
    return [tuple(run) for run in runs.tolist()]
