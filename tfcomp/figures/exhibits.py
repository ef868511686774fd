"""Figures with the table of what they show: made, finished, and saved.

A figure begins with `make_figure` or `make_panels`. `finish_figure` adds title,
legend and table, and settles the layout. An `Exhibit` is a figure or a table
with words, which `save_exhibit` writes.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import (
    font_manager,
    rc_context,
    rcdefaults,
    rcParams,
    rcParamsDefault,
)
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from tfcomp.config.errors import ConfigError
from tfcomp.storage.files import write_bytes, write_csv

if TYPE_CHECKING:
    import pandas as pd

DPI = 100  # pixels per inch of arrays
FILE_DPI = 150  # and of files
# Widths of figures in print, in inches, and the size of their text in points,
# unless the user has changed `font.size` of matplotlib's rcParams.
WIDTHS = {"column": 3.25, "page": 6.75}
PRINT_SIZE = 7.0
NARROW = 5.0  # inches; a narrower figure has fewer columns
MIN_SHARE = 0.5  # of the height, however narrow a figure is
# Letters of the default font, with a margin: matplotlib neither wraps titles
# nor keeps titles of neighboring axes apart.
LETTERS_PER_INCH = 10
# Times and versions in a file would make equal results look different.
_PDF_METADATA = {
    "CreationDate": None,
    "Creator": None,
    "Producer": None,
}
# LaTeX, which a user may have turned on, cannot set names with underscores.
WITHOUT_LATEX: Any = {"text.usetex": False}
# A figure whose layout is settled needs none, whatever a user has turned on.
_WITHOUT_LAYOUT: Any = {
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}
# Journals refuse fonts of type 3, matplotlib's default.
_SAVING: Any = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    **WITHOUT_LATEX,
    **_WITHOUT_LAYOUT,
}


@dataclass(frozen=True)
class Room:
    """The room of the figures that are made now, in inches.

    Attributes:
        width: Their width.
        height: Their largest height.
        is_most: True if narrow figures may be narrower.
    """

    width: float
    height: float
    is_most: bool


_room: ContextVar[Room | None] = ContextVar("room", default=None)

Width = str | float | None
BOXES = "Last Resort High-Efficiency"  # a font of matplotlib, for any letter


class Plot(Figure):
    """A figure of matplotlib, with the numbers that it shows.

    Attributes:
        data: A table with a row for each point, cell or pixel of the figure.
    """

    tabulate: Callable[[], pd.DataFrame]

    @functools.cached_property
    def data(self) -> pd.DataFrame:
        return self.tabulate()

    def savefig(self, *args: Any, **options: Any) -> None:
        """Saves the figure, with fonts embedded that can be edited."""
        with rc_context(_SAVING):
            super().savefig(*args, **options)


@contextmanager
def use_own_style() -> Iterator[None]:
    """Draws files alike on all machines, whatever a `matplotlibrc` says."""
    with rc_context():
        rcdefaults()
        yield


@contextmanager
def fit_width(
    width: Width,
    height: float = math.inf,
    is_most: bool = False,
) -> Iterator[None]:
    """Makes the figures of a `with` block fit a place in print.

    Args:
        width: `column`, `page`, or inches; empty for each figure's own size.
        height: The largest height in inches.
        is_most: True if figures of few panels may be narrower.

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
    room = None
    if inches:
        room = Room(float(inches), height, is_most)
        if rcParams["font.size"] == rcParamsDefault["font.size"]:
            style["font.size"] = PRINT_SIZE

    token = _room.set(room)
    try:
        with rc_context(style):
            yield
    finally:
        _room.reset(token)


def is_narrow() -> bool:
    """Returns True if figures are to fit less than a page of print."""
    room = _room.get()
    return room is not None and room.width < NARROW


def make_figure(size: tuple[float, float], layout: Any = "constrained") -> Plot:
    """Makes a figure of a size in inches, or as `fit_width` asks.

    Args:
        size: Width and height.
        layout: A layout engine of matplotlib.
    """
    width, height = size
    room = _room.get()
    if room is not None:
        room_width = room.width
        if room.is_most:
            room_width = min(room_width, scale_text(width))
        share = max(room_width / width, MIN_SHARE)
        height *= share
        height = min(height, room.height)
        width = room_width
    return Plot(figsize=(width, height), layout=layout)


def make_panels(
    shape: tuple[int, int],
    size: tuple[float, float],
    pad: float,
) -> tuple[Plot, NDArray[np.object_]]:
    """Makes a figure and its panels of a fixed aspect.

    Args:
        shape: The numbers of rows and of columns.
        size: Width and height of the figure in inches.
        pad: Inches around a panel.

    Returns:
        The figure, and its axes [rows, columns].
    """
    engine = ConstrainedLayoutEngine(
        compress=True,
        w_pad=pad,
        h_pad=pad,
    )
    figure = make_figure(size, engine)
    grid = figure.subplots(*shape, squeeze=False)
    return figure, grid


def make_row(
    size: tuple[float, float],
    count: int,
    sharey: bool = False,
) -> tuple[Plot, list[Axes]]:
    """Makes a figure and its panels in a row.

    Args:
        size: Width and height of the figure in inches.
        count: The number of panels.
        sharey: Whether they have one y axis.
    """
    figure = make_figure(size)
    grid = figure.subplots(
        ncols=count,
        sharey=sharey,
        squeeze=False,
    )
    return figure, list(grid[0])


def arrange_panels(count: int, max_columns: int) -> tuple[int, int]:
    """Returns (rows, columns): the fewest rows, of similar length.

    Args:
        count: The number of panels.
        max_columns: The most panels of a row.
    """
    num_rows = math.ceil(count / max_columns)
    num_columns = math.ceil(count / num_rows)
    return num_rows, num_columns


def keep_panels(grid: NDArray[np.object_], count: int) -> list[Axes]:
    """Keeps the first panels of a grid, row by row, and removes the others.

    Args:
        grid: Axes [rows, columns].
        count: The number of panels that are kept.
    """
    panels = list(grid.ravel())
    for axes in panels[count:]:
        axes.remove()
    return panels[:count]


def scale_text(points: float) -> float:
    """Returns a size of text that follows `font.size` of rcParams."""
    default_size = rcParamsDefault["font.size"]
    return points / default_size * rcParams["font.size"]


def add_panel_title(axes: Axes, title: str, width: float) -> None:
    """Writes the title of one panel.

    Args:
        axes: The panel.
        title: Its title, which is wrapped.
        width: Its width in inches.
    """
    text = _wrap(title, width)
    axes.set_title(text, fontsize=scale_text(11))


def finish_figure(
    figure: Plot,
    title: str,
    tabulate: Callable[[], pd.DataFrame],
) -> Plot:
    """Adds title, legend and table, and settles the layout; the last step.

    Args:
        figure: The figure with all of its axes.
        title: The title of the figure, or nothing.
        tabulate: Makes the table of the numbers that are shown.
    """
    figure.tabulate = tabulate
    if title:
        words = _wrap(title, figure.get_figwidth())
        figure.suptitle(words, fontsize=scale_text(12))
    _add_legend(figure)
    texts = figure.findobj(Text)
    add_fonts(texts)
    for artist in texts:
        artist.set_parse_math(False)  # names may have dollars
    for legend in figure.legends:
        extent = legend.get_window_extent()
        legend_height = extent.height / figure.dpi
        height = figure.get_figheight() + legend_height
        figure.set_figheight(height)

    # The layout is settled here, once: PNG and PDF have the same places, and
    # all ticks have the size of text that `fit_width` asks for.
    engine = figure.get_layout_engine()
    if engine is not None:
        with warnings.catch_warnings():
            # Titles of hundreds of factors leave no room; axes then overlap.
            warnings.filterwarnings("ignore", "constrained_layout not applied")
            engine.execute(figure)
        # An engine, even the idle one called "none", makes `savefig` draw a
        # figure twice.
        with rc_context(_WITHOUT_LAYOUT):
            figure.set_layout_engine(None)
    return figure


def _add_legend(figure: Figure) -> None:
    """Adds one legend of all panels below them."""
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        labeled = zip(labels, handles, strict=True)
        entries.update(labeled)
    if not entries:
        return

    # The sample of a line takes the rest of the width.
    width = figure.get_figwidth()
    texts = [_wrap(label, width - 0.7) for label in entries]
    lines = "\n".join(texts).split("\n")
    longest = max(map(len, lines))
    longest_width = longest / LETTERS_PER_INCH
    column_width = scale_text(longest_width + 0.8)
    max_columns = int(width / column_width)
    max_columns = max(1, max_columns)
    _, num_columns = arrange_panels(len(texts), max_columns)
    figure.legend(
        handles=list(entries.values()),
        labels=texts,
        loc="outside lower center",
        ncols=num_columns,
        frameon=False,
        handlelength=3.2,  # one period of the longest dashes,
    )


def _wrap(text: str, width: float) -> str:
    """Wraps text to a width in inches."""
    letters = int(width * LETTERS_PER_INCH / scale_text(1))
    return textwrap.fill(text, max(1, letters))


def melt(
    arrays: Mapping[Any, Any],
    names: Sequence[str],
    value: str,
) -> pd.DataFrame:
    """Returns a row for each number of arrays, named by array and axes.

    Args:
        arrays: Arrays of any shapes.
        names: The column of the arrays' names, then of each axis.
        value: The column of the numbers.
    """
    import pandas as pd  # here: training needs none

    tables = []
    for key, content in arrays.items():
        array = np.asarray(content, float)
        places = np.indices(array.shape)
        index = places.reshape(array.ndim, -1)
        columns: dict[str, Any] = {names[0]: key}
        named = zip(names[1:], index, strict=False)
        columns.update(named)
        columns[value] = array.ravel()
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def figure_to_png(
    figure: Figure,
    num_colors: int | None = None,
    dpi: int = FILE_DPI,
) -> bytes:
    """Renders a figure as a PNG file.

    Args:
        figure: The figure.
        num_colors: The size of a palette, by default all colors.
        dpi: Pixels per inch.
    """
    content = _save_figure(
        figure,
        format="png",
        dpi=dpi,
        metadata={"Software": None},
    )
    if num_colors is None:
        return content

    picture = Image.open(io.BytesIO(content)).convert("RGB")
    picture = picture.quantize(
        num_colors,
        method=Image.Quantize.MAXCOVERAGE,
        dither=Image.Dither.NONE,
    )
    buffer = io.BytesIO()
    picture.save(
        buffer,
        "PNG",
        dpi=(dpi, dpi),
        optimize=True,
    )
    return buffer.getvalue()


def figure_to_pdf(figure: Figure) -> bytes:
    """Renders a figure as a PDF file, the same bytes at any time."""
    return _save_figure(
        figure,
        format="pdf",
        metadata=_PDF_METADATA,
    )


def figure_to_array(figure: Figure, dpi: int = DPI) -> NDArray[np.uint8]:
    """Renders a figure as RGBA [H, W, 4].

    Args:
        figure: The figure.
        dpi: Pixels per inch.
    """
    content = _save_figure(
        figure,
        format="png",
        dpi=dpi,
        pil_kwargs={"compress_level": 0},  # it is read at once
    )
    image = Image.open(io.BytesIO(content))
    return np.array(image.convert("RGBA"))


def _save_figure(figure: Figure, **options: Any) -> bytes:
    """Renders a figure as a file.

    Args:
        figure: The figure.
        **options: As for matplotlib's `savefig`.
    """
    buffer = io.BytesIO()
    with rc_context(_SAVING):
        figure.savefig(buffer, **options)
    return buffer.getvalue()


def stack_to_png(figures: Sequence[Figure]) -> bytes:
    """Renders figures of any sizes, one below the other, as one PNG file."""
    pictures = []
    for figure in figures:
        pixels = figure_to_array(figure)
        pictures.append(Image.fromarray(pixels))
    width = max(picture.width for picture in pictures)
    height = sum(picture.height for picture in pictures)
    sheet = Image.new("RGBA", (width, height), "white")
    top = 0
    for picture in pictures:
        sheet.paste(picture, (0, top))
        top += picture.height

    buffer = io.BytesIO()
    sheet.save(buffer, format="PNG")
    return buffer.getvalue()


@dataclass(frozen=True)
class Exhibit:
    """One result to show.

    Attributes:
        name: File name without ending.
        title: The heading, which also describes the picture.
        caption: What is plotted, in which units, for which points.
        figure: The picture; None for a table alone.
        rows: The numbers, one dictionary a row, all with the same keys.
    """

    name: str
    title: str
    caption: str
    figure: Figure | None = None
    rows: Sequence[dict[str, Any]] = field(default_factory=list)


def save_exhibit(exhibit: Exhibit, folder: Path) -> list[Path]:
    """Writes `<name>.png`, `.pdf` and `.csv`; returns the paths it wrote.

    Args:
        exhibit: The picture, the table, or both.
        folder: The folder of the files, which exists.
    """
    path = folder / exhibit.name
    figure = exhibit.figure
    written = []
    if figure is not None:
        png = Path(f"{path}.png")
        pdf = Path(f"{path}.pdf")
        png_content = figure_to_png(figure)
        pdf_content = figure_to_pdf(figure)
        write_bytes(png, png_content)
        write_bytes(pdf, pdf_content)
        written += [png, pdf]
    if exhibit.rows:
        table = Path(f"{path}.csv")
        write_csv(table, exhibit.rows)
        written.append(table)
    return written


def add_fonts(texts: Iterable[Text]) -> None:
    """Adds an installed font to texts whose own font lacks letters.

    Where no font has them, a line on standard error says so, once.
    """
    for text in texts:
        path = font_manager.findfont(text.get_fontproperties())
        missing = _find_missing(path, text.get_text())
        if missing:
            family = find_family(frozenset(missing))
            text.set_fontfamily([*text.get_fontfamily(), family, BOXES])


def _find_missing(path: str, letters: Iterable[str]) -> set[str]:
    """Finds letters, but for spaces, that a font lacks."""
    font = font_manager.get_font(path)
    missing = set()
    for letter in letters:
        if not (letter.isspace() or font.get_char_index(ord(letter))):
            missing.add(letter)
    return missing


@functools.cache
def find_family(letters: frozenset[str]) -> str:
    """Finds an installed family that has some letters; else that of boxes."""
    for entry in font_manager.fontManager.ttflist:
        if entry.name == BOXES:
            continue
        with contextlib.suppress(OSError):  # a font that was removed
            if not _find_missing(entry.fname, letters):
                return entry.name
    say_boxes()
    return BOXES


@functools.cache
def say_boxes() -> None:
    """Says, once, that figures lack letters."""
    note = "note: figures have boxes for letters that no installed font has"
    print(f"{note} (Debian's fonts-noto-cjk has Chinese)", file=sys.stderr)
