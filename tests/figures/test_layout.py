"""Places of axes, and rendering: PNG, PDF and pixels, without a display."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from tfcomp import figures
from tfcomp.config.errors import ConfigError
from tfcomp.figures import layout
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import (
    figure_to_array,
    figure_to_pdf,
    figure_to_png,
)
from tfcomp.figures.layout import add_panel_title, finish_figure, make_panels


def test_figures_for_print() -> None:
    def draw() -> Figure:
        table = pd.DataFrame({"a": [0, 1]})
        return draw_curves(table, xlabel="x", ylabel="y")

    with layout.fit_width("column"):
        figure = draw()
    assert figure.get_figwidth() == 3.25
    assert figure.axes[0].xaxis.label.get_fontsize() == 7
    pdf = figure_to_pdf(figure)
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    with rc_context({"font.size": 9}), layout.fit_width("page"):
        figure = draw()  # with text of the user's size
    assert figure.get_figwidth() == 6.75
    assert figure.axes[0].xaxis.label.get_fontsize() == 9
    with pytest.raises(ConfigError, match="column, page"):
        layout.fit_width("a4").__enter__()


def test_dollars_in_names_are_no_mathematics() -> None:
    name = "a$^_{x$b"  # ill-formed as mathematics
    figure, panels = make_panels((1, 1), (4, 3), 0.1)
    axes = panels[0, 0]
    axes.plot([1, 1000], [1, 1000], label=name)
    axes.set(xlabel=name, ylabel=name, yscale="log")
    axes.set_xticks([1, 2], labels=[name, name])
    axes.text(1, 1, name)
    add_panel_title(axes, name, 4)
    finish_figure(figure, name, pd.DataFrame)
    assert figure_to_png(figure) and figure_to_pdf(figure)
    named = [t for t in figure.findobj(Text) if "$^" in t.get_text()]
    assert len(named) >= 8
    assert not any(text.get_parse_math() for text in named)
    assert all(text.get_parse_math() for text in axes.get_yticklabels())


def test_rendering_leaves_the_figure_as_it_was() -> None:
    figure = Figure(dpi=60)
    figure.add_subplot().plot([0, 1], [0, 1], label="line")
    before = figure.dpi, figure.canvas, tuple(figure.get_size_inches())
    array, png = figure_to_array(figure), figure_to_png(figure, dpi=100)
    assert array.dtype == np.uint8 and array.shape == (480, 640, 4)
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    np.testing.assert_array_equal(array, pixels)
    assert figure_to_pdf(figure) == figure_to_pdf(figure)
    after = figure.dpi, figure.canvas, tuple(figure.get_size_inches())
    assert before == after
    np.testing.assert_array_equal(array, figure_to_array(figure))


def test_no_module_uses_pyplot() -> None:
    """Its state is global: callbacks and threads draw."""
    files = list(Path(figures.__path__[0]).glob("*.py"))
    assert len(files) > 5
    assert not [f for f in files if "matplotlib.pyplot" in f.read_text("utf-8")]
