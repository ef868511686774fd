"""Panels, titles, the legend and the final layout of every kind of figure."""

import math
import textwrap
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context, rcParams, rcParamsDefault
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
# unless `font.size` of matplotlib's rcParams is not the default.
WIDTHS = {"column": 3.25, "page": 6.75}
PRINT_SIZE = 7.0
MIN_SHARE = 0.5  # of the height, however narrow a figure is
Width = str | float | None
_room: ContextVar[tuple[float, float] | None] = ContextVar("room", default=None)
# Letters of the default font in titles, with a margin: matplotlib neither
# wraps titles nor keeps titles of neighboring axes apart.
_LETTERS_PER_INCH = 10
MAX_LAYOUT_STEPS = 10  # a step costs more than all drawing
# Cache of the positions of axes and titles, by `_describe_layout`. It saves
# 0.2 s for each picture of a training. Marks do not take part in layouts.
_known_places: dict[Hashable, list[dict[str, Any]]] = {}
MAX_KNOWN = 256


@contextmanager
def fit_width(width: Width, height: float = math.inf) -> Iterator[None]:
    """Makes figures of the block as wide as a column, a page, or inches."""
    if isinstance(width, str) and width not in ("", *WIDTHS):
        raise ConfigError("width", f"must be among {', '.join(WIDTHS)}", width)
    inches = WIDTHS.get(width) if isinstance(width, str) else width
    own, default = rcParams["font.size"], rcParamsDefault["font.size"]
    size = PRINT_SIZE if inches and own == default else own
    token = _room.set((inches, height) if inches else None)
    try:
        with rc_context({"font.size": size, **WITHOUT_LATEX}):
            yield
    finally:
        _room.reset(token)


def make_figure(size: tuple[float, float], **options: Any) -> Plot:
    """Makes a figure of a size in inches, or of the width that is to fit."""
    if (room := _room.get()) is None:
        return Plot(figsize=size, **options)
    width, most = room
    height = size[1] * max(width / size[0], MIN_SHARE)
    return Plot(figsize=(width, min(height, most)), **options)


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
    """Adds title, legend and table, and settles the layout; the last step."""
    if title:
        text = _wrap(title, figure.get_figwidth())
        figure.suptitle(text, fontsize=scale_text(12))
    _add_legend(figure, no_value_color)
    take_dollars_literally(figure)
    _settle_layout(figure)
    figure.tabulate = tabulate
    return figure


def add_panel_title(axes: Axes, title: str, width: float) -> None:
    """Writes the title of one panel of a width in inches."""
    axes.set_title(_wrap(title, width), fontsize=scale_text(11))


def _add_legend(figure: Figure, no_value_color: str | None) -> None:
    width = figure.get_figwidth()
    found = [axes.get_legend_handles_labels() for axes in figure.axes]
    pairs = [pair for both in found for pair in zip(*both, strict=True)]
    if no_value_color is not None:
        pairs.append((Patch(color=no_value_color), "no finite value"))
    handles: dict[str, Any] = {}
    for handle, label in pairs:
        # The sample of a line takes the rest of the width.
        handles.setdefault(_wrap(label, width - 0.7), handle)
    if not handles:
        return
    longest = max(len(line) for text in handles for line in text.split("\n"))
    column = scale_text(longest / _LETTERS_PER_INCH + 0.8)
    max_columns = int(width / column)
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
    figure.set_figheight(
        figure.get_figheight() + 0.2 * scale_text(num_lines) + 0.1
    )


def take_dollars_literally(figure: Figure) -> None:
    """Turns mathtext off, except for powers of ten at logarithmic axes."""
    powers = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if isinstance(axis.get_major_formatter(), LogFormatter)
        for label in axis.get_ticklabels(which="both")
    }
    for text in set(figure.findobj(Text)) - powers:
        text.set_parse_math(False)


def _settle_layout(figure: Figure) -> None:
    """Fixes the positions of axes: Matplotlib makes one step a drawing."""
    if figure.get_layout_engine() is None:
        return
    if all(axes.get_aspect() == "auto" for axes in figure.axes):
        _run_engine(figure, min(MAX_LAYOUT_STEPS, 1))
    elif (key := _describe_layout(figure)) in _known_places:
        for artist, place in zip(
            (*figure.axes, *figure.texts), _known_places[key], strict=True
        ):
            artist.set(**place)
    else:
        _run_engine(figure, MAX_LAYOUT_STEPS)
        if len(_known_places) >= MAX_KNOWN:
            _known_places.clear()
        _known_places[key] = [
            {
                "position": axes.get_position(original=True),
                "anchor": axes.get_anchor(),
                "box_aspect": axes.get_box_aspect(),
                "aspect": axes.get_aspect(),
            }
            for axes in figure.axes
        ]
        _known_places[key] += [
            {"position": t.get_position(), "va": t.get_verticalalignment()}
            for t in figure.texts
        ]
    figure.set_layout_engine("none")


def _describe_layout(figure: Figure) -> Hashable:
    engine = figure.get_layout_engine()
    panels = [
        (
            repr(axes.get_subplotspec()),
            axes.get_aspect(),
            (axes.get_xlim(), axes.get_ylim()),
            (axes.xaxis.get_visible(), axes.yaxis.get_visible()),
        )
        for axes in figure.axes
    ]
    # The layout reads the height of a title of axes, and no width.
    titles = {axes.title for axes in figure.axes}
    texts = [
        text.get_window_extent().height
        if text in titles
        else (text.get_text(), text.get_fontsize())
        for text in figure.findobj(Text)
        if text.get_visible()
    ]
    size = tuple(figure.get_size_inches())
    return size, repr(engine and engine.get()), tuple(panels), tuple(texts)


def _run_engine(figure: Figure, steps: int) -> None:
    engine = figure.get_layout_engine()
    assert engine is not None  # every figure here has one
    previous = np.array(np.nan)
    for _ in range(steps):
        engine.execute(figure)
        bounds = np.array([axes.get_position().bounds for axes in figure.axes])
        if np.allclose(bounds, previous, rtol=0, atol=2e-3):  # 1 or 2 pixels
            break
        previous = bounds


def _wrap(text: str, width: float) -> str:
    letters = width * _LETTERS_PER_INCH / scale_text(1)
    return textwrap.fill(text, max(1, int(letters)))
