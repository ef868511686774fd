"""Figures with the table of what they show, exhibits, and data of pages."""

import base64
import functools
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context, rcdefaults
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from tfcomp.storage.files import write_bytes, write_csv

DPI = 100  # pixels per inch of arrays
FILE_DPI = 150  # and of files
# Times and versions in a file would make equal results look different.
_PDF_METADATA = {"CreationDate": None, "Creator": None, "Producer": None}
# LaTeX, which a user may have turned on, cannot set names with underscores.
WITHOUT_LATEX: Any = {"text.usetex": False}
# Journals refuse fonts of type 3, matplotlib's default.
_SAVING: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, **WITHOUT_LATEX}


@contextmanager
def use_own_style() -> Iterator[None]:
    """Draws files alike on all machines, whatever a `matplotlibrc` says."""
    with rc_context():
        rcdefaults()
        yield


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


def melt(
    arrays: Mapping[Any, Any], names: Sequence[str], value: str
) -> pd.DataFrame:
    """Returns a row for each number of arrays, named by array and axes."""
    tables = []
    for key, content in arrays.items():
        array = np.asarray(content)
        columns: dict[str, Any] = {names[0]: key}
        index = np.indices(array.shape).reshape(array.ndim, -1)
        columns.update(zip(names[1:], index, strict=False))
        columns[value] = array.ravel()
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def figure_to_png(
    figure: Figure, num_colors: int | None = None, dpi: int = FILE_DPI
) -> bytes:
    """Renders a figure as a PNG file, with a palette of `num_colors` or all."""
    picture = Image.fromarray(figure_to_array(figure, dpi))
    if num_colors is not None:
        picture = picture.convert("RGB").quantize(
            num_colors, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    buffer = io.BytesIO()
    picture.save(
        buffer, format="PNG", dpi=(dpi, dpi), optimize=num_colors is not None
    )
    return buffer.getvalue()


def figure_to_pdf(figure: Figure) -> bytes:
    """Renders a figure as a PDF file, the same bytes at any time."""
    # Its fonts take as long to import as all figures together.
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    buffer = io.BytesIO()
    with _keep_canvas(figure), rc_context(_SAVING):
        FigureCanvasPdf(figure).print_pdf(buffer, metadata=_PDF_METADATA)
    return buffer.getvalue()


def figure_to_array(figure: Figure, dpi: int = DPI) -> NDArray[np.uint8]:
    """Renders a figure, which is left as it was, as RGBA `[H, W, 4]`."""
    with _keep_canvas(figure), rc_context(_SAVING):
        figure.dpi = dpi
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())  # a copy: the canvas goes


def stack_to_png(pictures: Sequence[NDArray[np.uint8]]) -> bytes:
    """Stacks pictures `[H, W, 4]` of any sizes into one PNG file."""
    width = max(picture.shape[1] for picture in pictures)
    height = sum(picture.shape[0] for picture in pictures)
    sheet = Image.new("RGBA", (width, height), "white")
    top = 0
    for picture in pictures:
        sheet.paste(Image.fromarray(picture), (0, top))
        top += picture.shape[0]
    buffer = io.BytesIO()
    sheet.save(buffer, format="PNG")
    return buffer.getvalue()


def arrange_channels(images: ArrayLike) -> np.ndarray:
    """Returns RGB, or gray `[n, H, W]` with channels beside each other."""
    images = np.asarray(images, float)
    if images.ndim != 4 or images.shape[-1] == 3:
        return images
    count, height, width, channels = images.shape
    beside = images.transpose(0, 1, 3, 2)
    return beside.reshape(count, height, channels * width)


def tile_images(images: np.ndarray, columns: int) -> np.ndarray:
    """Returns images [n, H, W, ...] in one, row by row, with 0 at the end."""
    free = -len(images) % columns
    cells = np.pad(images, [(0, free), *[(0, 0)] * (images.ndim - 1)])
    count, height, width, *colors = cells.shape
    grid = cells.reshape(-1, columns, height, width, *colors).swapaxes(1, 2)
    return grid.reshape(count // columns * height, columns * width, *colors)


def make_sprite(
    images: Mapping[str, np.ndarray], upright: bool
) -> dict[str, Any]:
    """Packs images [n, H, W, C], clipped to 0..1, as tiles of one PNG.

    Args:
        images: Images by name, all of one size.
        upright: Whether their first row is at the top.

    Returns:
        `sprite`, a data URL; `size` of a tile and `columns` of tiles; and
        `images`, the numbers of the tiles by name. Equal images share a tile.
    """
    tiles: dict[bytes, int] = {}
    places = {}
    for name, stack in images.items():
        finite = np.nan_to_num(arrange_channels(stack), posinf=1.0, neginf=0.0)
        pixels = np.round(finite.clip(0, 1) * 255).astype(np.uint8)
        if not upright:
            pixels = pixels[:, ::-1]
        places[name] = [
            tiles.setdefault(tile.tobytes(), len(tiles)) for tile in pixels
        ]

    shape = pixels.shape[1:]
    array = np.frombuffer(b"".join(tiles), np.uint8).reshape(-1, *shape)
    columns = math.isqrt(max(len(tiles) - 1, 0)) + 1
    file = io.BytesIO()
    Image.fromarray(tile_images(array, columns)).save(file, "PNG")
    return {
        "images": places,
        "size": (shape[1], shape[0]),
        "columns": columns,
        "sprite": f"data:image/png;base64,{encode(file.getvalue())}",
    }


def encode(content: bytes) -> str:
    """Returns bytes in base64."""
    return base64.b64encode(content).decode("ascii")


def pack_bytes(values: np.ndarray, top: int) -> str:
    """Returns numbers from 0 to 1, as bytes from 0 to `top`, in base64."""
    whole = np.round(np.nan_to_num(values).clip(0, 1) * top)
    return encode(whole.astype(np.uint8).tobytes())


def round_numbers(values: np.ndarray) -> list:
    """Rounds to four digits, with None for numbers that are not finite."""
    if np.ndim(values) > 1:
        return [round_numbers(row) for row in values]
    return [
        float(f"{v:.4g}") if math.isfinite(v) else None
        for v in np.asarray(values, float).tolist()
    ]


@contextmanager
def _keep_canvas(figure: Figure) -> Iterator[None]:
    dpi, canvas = figure.dpi, figure.canvas
    try:
        yield
    finally:
        figure.set_canvas(canvas)
        figure.dpi = dpi


@dataclass(frozen=True)
class Exhibit:
    """One result to show.

    Attributes:
        name: File name without ending.
        caption: What is plotted, in which units, for which points.
        figure: The picture; None for a table alone.
        rows: The numbers, one dictionary a row, all with the same keys.
    """

    name: str
    title: str
    caption: str
    figure: Figure | None = None
    rows: Sequence[dict[str, Any]] = field(default_factory=list)

    @property
    def alt(self) -> str:
        """Description of the picture for screen readers."""
        parts = [self.title]
        for axes in self.figure.axes if self.figure else ():
            _, labels = axes.get_legend_handles_labels()
            parts += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
            parts += labels
        words = [" ".join(part.split()) for part in parts if part]
        return f"{'; '.join(dict.fromkeys(words))}."


def save_exhibit(exhibit: Exhibit, folder: Path) -> list[Path]:
    """Writes `<name>.png`, `.pdf` and `.csv`; returns the paths it wrote."""
    path = folder / exhibit.name
    figure = exhibit.figure
    written = []
    if figure is not None:
        png = Path(f"{path}.png")
        pdf = Path(f"{path}.pdf")
        write_bytes(png, figure_to_png(figure))
        write_bytes(pdf, figure_to_pdf(figure))
        written += [png, pdf]
    if exhibit.rows:
        table = Path(f"{path}.csv")
        write_csv(table, exhibit.rows)
        written.append(table)
    return written
