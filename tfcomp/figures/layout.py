"""Sizes, panels, titles and legends that all kinds of figures share."""

import math
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context, rcParams, rcParamsDefault
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter
from numpy.typing import NDArray

from tfcomp.config.errors import ConfigError
from tfcomp.figures.exhibits import WITHOUT_LATEX, Plot

# Widths of figures in print, in inches, and the size of their text in points,
# unless the user has changed `font.size` of matplotlib's rcParams.
WIDTHS = {"column": 3.25, "page": 6.75}
PRINT_SIZE = 7.0
MIN_SHARE = 0.5  # of the height, however narrow a figure is
Width = str | float | None
# Width and largest height of the figures that are made now, in inches.
_room: ContextVar[tuple[float, float] | None] = ContextVar("room", default=None)
# Letters of the default font in titles, with a margin: matplotlib neither
# wraps titles nor keeps titles of neighboring axes apart.
_LETTERS_PER_INCH = 10


@contextmanager
def fit_width(width: Width, height: float = math.inf) -> Iterator[None]:
    """Makes the figures of a `with` block fit a place in print.

    Args:
        width: `column`, `page`, or inches; empty for each figure's own size.
        height: The largest height in inches.

    Raises:
        ConfigError: If the width has another name.
    """
    inches = width
    if isinstance(width, str):
        if width and width not in WIDTHS:
            rule = f"must be among {', '.join(WIDTHS)}"
            raise ConfigError("width", rule, width)
        inches = WIDTHS.get(width)

    style = dict(WITHOUT_LATEX)
    if inches and rcParams["font.size"] == rcParamsDefault["font.size"]:
        style["font.size"] = PRINT_SIZE

    room = (float(inches), height) if inches else None
    token = _room.set(room)
    try:
        with rc_context(style):
            yield
    finally:
        _room.reset(token)


def make_figure(size: tuple[float, float], **options: Any) -> Plot:
    """Makes a figure of a size in inches, or as `fit_width` asks."""
    width, height = size
    room = _room.get()
    if room is not None:
        room_width, max_height = room
        height *= max(room_width / width, MIN_SHARE)
        height = min(height, max_height)
        width = room_width
    return Plot(figsize=(width, height), **options)


def scale_text(points: float) -> float:
    """Returns a size of text that follows `font.size` of rcParams."""
    return points / rcParamsDefault["font.size"] * rcParams["font.size"]


def arrange_panels(count: int, max_columns: int) -> tuple[int, int]:
    """Returns (rows, columns): the fewest rows, of similar length."""
    num_rows = math.ceil(count / max_columns)
    return num_rows, math.ceil(count / num_rows)


def make_panels(
    shape: tuple[int, int], figsize: tuple[float, float], pad: float
) -> tuple[Plot, NDArray[np.object_]]:
    """Makes a figure and its panels of a fixed aspect, `[rows, columns]`."""
    engine = ConstrainedLayoutEngine(compress=True, w_pad=pad, h_pad=pad)
    figure = make_figure(figsize, layout=engine)
    return figure, figure.subplots(*shape, squeeze=False)


def keep_panels(grid: NDArray[np.object_], count: int) -> list[Axes]:
    """Keeps the first panels of a grid, row by row, and removes the others."""
    panels = list(grid.ravel())
    for axes in panels[count:]:
        axes.remove()
    return panels[:count]


def finish_figure(
    figure: Plot,
    title: str,
    tabulate: Callable[[], pd.DataFrame],
    no_value_color: str | None = None,
) -> Plot:
    """Adds title, legend and table, and settles the layout; the last step.

    Args:
        figure: The figure with all of its axes.
        title: The title of the figure, or nothing.
        tabulate: Makes the table of the numbers that are shown.
        no_value_color: The color of numbers that are not finite, if any are.
    """
    if title:
        text = _wrap(title, figure.get_figwidth())
        figure.suptitle(text, fontsize=scale_text(12))
    _add_legend(figure, no_value_color)
    take_dollars_literally(figure)
    figure.tabulate = tabulate
    # The layout is settled here, once: PNG and PDF have the same places, and
    # all ticks have the size of text that `fit_width` asks for.
    engine = figure.get_layout_engine()
    if engine is not None:
        with warnings.catch_warnings():
            # Titles of hundreds of factors leave no room; axes then overlap.
            warnings.filterwarnings("ignore", "constrained_layout not applied")
            engine.execute(figure)
        figure.set_layout_engine("none")
    return figure


def add_panel_title(axes: Axes, title: str, width: float) -> None:
    """Writes the title of one panel of a width in inches."""
    axes.set_title(_wrap(title, width), fontsize=scale_text(11))


def _add_legend(figure: Figure, no_value_color: str | None) -> None:
    """Adds one legend of all panels below them, and makes room for it."""
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    if no_value_color is not None:
        entries["no finite value"] = Patch(color=no_value_color)
    if not entries:
        return

    width = figure.get_figwidth()
    # The sample of a line takes the rest of the width.
    texts = [_wrap(label, width - 0.7) for label in entries]
    longest = max(len(line) for text in texts for line in text.split("\n"))
    column_width = scale_text(longest / _LETTERS_PER_INCH + 0.8)
    max_columns = max(1, int(width / column_width))
    num_rows, num_columns = arrange_panels(len(texts), max_columns)
    figure.legend(
        handles=list(entries.values()),
        labels=texts,
        loc="outside lower center",
        ncols=num_columns,
        frameon=False,
        handlelength=3.2,  # one period of the longest dashes
    )

    num_lines = num_rows * max(text.count("\n") + 1 for text in texts)
    height = 0.2 * scale_text(num_lines) + 0.1
    figure.set_figheight(figure.get_figheight() + height)


def take_dollars_literally(figure: Figure) -> None:
    """Turns mathtext off, except for powers of ten at logarithmic axes."""
    powers: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                powers.update(axis.get_ticklabels(which="both"))
    for text in set(figure.findobj(Text)) - powers:
        text.set_parse_math(False)


def _wrap(text: str, width: float) -> str:
    letters = width * _LETTERS_PER_INCH / scale_text(1)
    return textwrap.fill(text, max(1, int(letters)))
