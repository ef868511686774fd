"""Rendering: PNG, PDF and arrays of pixels, without a display."""

import io
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from tfcomp import figures
from tfcomp.figures.exhibits import (
    figure_to_array,
    figure_to_pdf,
    figure_to_png,
)
from tfcomp.figures.layout import add_panel_title, finish_figure, make_panels


@pytest.fixture
def figure() -> Figure:
    figure = Figure()
    axes = figure.add_subplot()
    for slope in range(8):
        axes.plot([0, 1], [0, slope], label=f"line {slope}")
    axes.legend()
    return figure


def test_dollars_in_names_are_no_mathematics() -> None:
    name = "a$^_{x$b"  # ill-formed as mathematics
    figure, panels = make_panels((1, 1), (4, 3), 0.1)
    axes = panels[0, 0]
    axes.plot([1, 1000], [1, 1000], label=name)
    axes.set(xlabel=name, ylabel=name, yscale="log")
    axes.set_xticks([1, 2], labels=[name, name])
    axes.text(1, 1, name)
    add_panel_title(axes, name, 4)
    finish_figure(figure, name)
    assert figure_to_png(figure) and figure_to_pdf(figure)
    named = [t for t in figure.findobj(Text) if "$^" in t.get_text()]
    assert len(named) >= 8
    assert not any(text.get_parse_math() for text in named)
    assert all(text.get_parse_math() for text in axes.get_yticklabels())


def test_png_and_array_have_the_same_pixels(figure: Figure) -> None:
    width, height = figure.get_size_inches()
    png = figure_to_png(figure, dpi=100)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    array = figure_to_array(figure)
    assert array.dtype == np.uint8
    assert array.shape == (int(height * 100), int(width * 100), 4)
    np.testing.assert_array_equal(
        array, np.asarray(Image.open(io.BytesIO(png)))
    )


def test_rendering_leaves_the_figure_as_it_was(figure: Figure) -> None:
    figure.dpi = 60
    before = figure.dpi, figure.canvas, tuple(figure.get_size_inches())
    first = figure_to_array(figure)
    figure_to_png(figure)
    assert figure_to_pdf(figure) == figure_to_pdf(figure)
    assert before == (
        figure.dpi,
        figure.canvas,
        tuple(figure.get_size_inches()),
    )
    np.testing.assert_array_equal(first, figure_to_array(figure))


def test_figures_never_import_pyplot() -> None:
    modules = pkgutil.iter_modules(figures.__path__, "tfcomp.figures.")
    code = (
        f"import sys, numpy, {', '.join(m.name for m in modules)};"
        "from tfcomp.figures.map_plots import draw_gram_matrices;"
        "from tfcomp.figures.exhibits import figure_to_png;"
        "figure_to_png(draw_gram_matrices({'a': numpy.eye(3)}, 2));"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
