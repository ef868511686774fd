"""Figures as PNG files and as arrays of pixels, without a display."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image


def figure_to_png(
    figure: Figure, dpi: float = 100, num_colors: int | None = None
) -> bytes:
    """Renders a figure as a PNG file.

    Args:
        figure: The figure, which is left as it was.
        dpi: Resolution in pixels per inch.
        num_colors: Size of a palette, at most 256, which makes files of
            lines and text a third as large; None keeps every colour.

    Returns:
        The content of the file.
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


def figure_to_array(figure: Figure, dpi: float = 100) -> NDArray[np.uint8]:
    """Renders a figure as an array of pixels.

    Args:
        figure: The figure, which is left as it was.
        dpi: Resolution in pixels per inch.

    Returns:
        Red, green, blue and opacity of the pixels, `[H, W, 4]`, from the top
        row down.
    """
    previous_dpi, previous_canvas = figure.dpi, figure.canvas
    try:
        figure.dpi = dpi
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())  # a copy: the canvas goes
    finally:
        figure.set_canvas(previous_canvas)
        figure.dpi = previous_dpi
