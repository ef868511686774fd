"""Panels, titles, the legend and the final layout of every kind of figure."""

import contextlib
import contextvars
import math
import textwrap
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter
from numpy.typing import NDArray

# Letters of the default font at the sizes below, with a margin: matplotlib
# neither wraps the titles of neighboring axes nor keeps them apart.
_LETTERS_PER_INCH = 10
_TITLE_SIZE = 12
_PANEL_TITLE_SIZE = 11

# A step costs more than all drawing. What moves by less than a share of the
# figure, a pixel or two, stays where it is.
MAX_LAYOUT_STEPS = 10
_LAYOUT_TOLERANCE = 2e-3
_is_at_drawing = contextvars.ContextVar("is_at_drawing", default=False)


@contextlib.contextmanager
def layout_at_drawing() -> Iterator[None]:
    """Leaves the layout of figures that this thread makes to who draws them."""
    token = _is_at_drawing.set(True)
    try:
        yield
    finally:
        _is_at_drawing.reset(token)


def arrange_panels(count: int, max_columns: int) -> tuple[int, int]:
    """Returns how many (rows, columns) hold `count` panels.

    There are as few rows as possible, all of similar length.
    """
    num_rows = math.ceil(count / max_columns)
    return num_rows, math.ceil(count / num_rows)


def make_panels(
    shape: tuple[int, int], figsize: tuple[float, float], pad: float
) -> tuple[Figure, NDArray[np.object_]]:
    """Makes a figure with panels of a fixed aspect, `[rows, columns]`.

    Its size, without the legend, and the space around panels are in inches.
    """
    figure = Figure(figsize=figsize, layout="compressed")
    figure.get_layout_engine().set(w_pad=pad, h_pad=pad)
    return figure, figure.subplots(*shape, squeeze=False)


def keep_panels(grid: NDArray[np.object_], count: int) -> list[Axes]:
    """Keeps the first panels of a grid, row by row, and removes the others."""
    panels = list(grid.ravel())
    for axes in panels[count:]:
        axes.remove()
    return panels[:count]


def finish_figure(
    figure: Figure, title: str, no_value_color: str | None = None
) -> None:
    """Adds the title and the legend of a figure and settles its layout.

    Nothing is added to it afterwards. Whatever has a label in any of its axes
    is in the legend, as is the color of the cells without a finite value, if
    it has any.
    """
    if title:
        text = _wrap(title, figure.get_figwidth())
        figure.suptitle(text, fontsize=_TITLE_SIZE)
    _add_legend(figure, no_value_color)
    take_dollars_literally(figure)
    figure.is_unsettled = True
    if not _is_at_drawing.get():
        settle_layout(figure)


def add_panel_title(axes: Axes, title: str, width: float) -> None:
    """Writes the title of one panel of a width in inches."""
    axes.set_title(_wrap(title, width), fontsize=_PANEL_TITLE_SIZE)


def _add_legend(figure: Figure, no_value_color: str | None) -> None:
    """Explains below a figure what is drawn in it, every label once.

    The legend has as many columns as fit in, and the figure grows by its
    height, so that the axes keep their size.
    """
    width = figure.get_figwidth()
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    pairs = [pair for both in found for pair in zip(*both, strict=True)]
    if no_value_color is not None:
        pairs.append((Patch(color=no_value_color), "no finite value"))
    handles = {}
    for handle, label in pairs:
        # The sample of a line takes the rest of the width.
        handles.setdefault(_wrap(label, width - 0.7), handle)
    if not handles:
        return
    longest = max(len(line) for text in handles for line in text.split("\n"))
    max_columns = int(width / (longest / _LETTERS_PER_INCH + 0.8))
    num_rows, num_columns = arrange_panels(len(handles), max(1, max_columns))
    figure.legend(
        handles=list(handles.values()),
        labels=list(handles),
        loc="outside lower center",
        ncols=num_columns,
        frameon=False,
        handlelength=3.2,  # one period of the longest dashes
    )
    num_lines = num_rows * max(text.count("\n") + 1 for text in handles)
    figure.set_figheight(figure.get_figheight() + 0.2 * num_lines + 0.1)


def take_dollars_literally(figure: Figure) -> None:
    """Takes mathematics for nothing but powers of ten at logarithmic axes."""
    powers = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if isinstance(axis.get_major_formatter(), LogFormatter)
        for label in axis.get_ticklabels(which="both")
    }
    for text in set(figure.findobj(Text)) - powers:
        text.set_parse_math(False)


def settle_layout(figure: Figure) -> None:
    """Finds the places of all axes of a finished figure and keeps them.

    One step of matplotlib's layout is made at every drawing, and panels of a
    fixed aspect need several: the first picture would be cramped, and no two
    of them equal. Axes that are added later are not arranged. Figures of
    others, and settled ones, are left as they are.
    """
    if not getattr(figure, "is_unsettled", False):
        return
    figure.is_unsettled = False
    engine = figure.get_layout_engine()
    is_fixed = any(axes.get_aspect() != "auto" for axes in figure.axes)
    previous = np.nan
    for _ in range(MAX_LAYOUT_STEPS if is_fixed else min(MAX_LAYOUT_STEPS, 1)):
        engine.execute(figure)
        bounds = np.array([axes.get_position().bounds for axes in figure.axes])
        if np.allclose(bounds, previous, rtol=0, atol=_LAYOUT_TOLERANCE):
            break
        previous = bounds
    figure.set_layout_engine("none")


def _wrap(text: str, width: float) -> str:
    return textwrap.fill(text, max(1, int(width * _LETTERS_PER_INCH)))
