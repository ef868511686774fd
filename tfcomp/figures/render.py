"""Figures as PNG files and as arrays of pixels, without a display."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray


def figure_to_png(figure: Figure, dpi: float = 100) -> bytes:
    """Renders a figure as a PNG file.

    Args:
        figure: The figure, which is left as it was.
        dpi: Resolution in pixels per inch.

    Returns:
        The content of the file.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, backend="agg")
    return buffer.getvalue()


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
