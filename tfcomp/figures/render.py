"""Figures as PNG and PDF files and as arrays of pixels, without a display."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

DPI = 100  # pixels per inch
# Times and versions in a file would make equal results look different.
_PDF_METADATA = {"CreationDate": None, "Creator": None, "Producer": None}


def figure_to_png(
    figure: Figure, num_colors: int | None = None, dpi: int = DPI
) -> bytes:
    """Renders a figure as a PNG file.

    The figure is left as it was. A palette of at most 256 colors makes files
    of lines and text a third as large; None keeps every color.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, backend="agg")
    if num_colors is None:
        return buffer.getvalue()
    picture = Image.open(buffer).convert("RGB")
    small = io.BytesIO()
    picture.quantize(
        num_colors, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(small, format="PNG", optimize=True)
    return small.getvalue()


def figure_to_pdf(figure: Figure) -> bytes:
    """Renders a figure as a PDF file, the same bytes at any time."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="pdf", metadata=_PDF_METADATA)
    return buffer.getvalue()


def figure_to_array(figure: Figure) -> NDArray[np.uint8]:
    """Renders a figure, which is left as it was, 100 pixels per inch.

    Red, green, blue and opacity `[H, W, 4]`, from the top row down.
    """
    previous_dpi, previous_canvas = figure.dpi, figure.canvas
    try:
        figure.dpi = DPI
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())  # a copy: the canvas goes
    finally:
        figure.set_canvas(previous_canvas)
        figure.dpi = previous_dpi
