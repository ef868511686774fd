"""Sizes of figures and their text, and what is written to files."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import draw_curves, set_log_scale


def draw_line() -> Figure:
    table = pd.DataFrame({"a": [0, 1]})
    return draw_curves(
        table,
        xlabel="x",
        ylabel="y",
    )


@pytest.mark.parametrize(
    "width, style, inches, points",
    [
        ("column", {}, 3.25, 7),
        ("page", {"font.size": 9}, 6.75, 9),
        (4.0, {}, 4.0, 7),
    ],
)
def test_figures_for_print(
    width,
    style,
    inches,
    points,
):
    with rc_context(style), exhibits.fit_width(width):
        figure = draw_line()

    assert figure.get_figwidth() == inches
    assert figure.axes[0].xaxis.label.get_fontsize() == points


def test_files_repeat_and_have_fonts_that_journals_take():
    figure = draw_line()

    pdf = exhibits.figure_to_pdf(figure)
    png = exhibits.figure_to_png(figure, dpi=50)
    pixels = exhibits.figure_to_array(figure, dpi=50)

    assert b"/Type3" not in pdf
    assert b"/CIDFontType2" in pdf
    assert exhibits.figure_to_pdf(figure) == pdf
    assert exhibits.figure_to_png(figure, dpi=50) == png
    height, width, channels = pixels.shape
    assert width == 50 * figure.get_figwidth()
    assert height == pytest.approx(50 * figure.get_figheight(), abs=1)
    assert channels == 4


@pytest.mark.parametrize(
    "style",
    [
        {},
        {"figure.autolayout": True},
        {"figure.constrained_layout.use": True},
    ],
)
def test_a_finished_figure_is_drawn_once(
    style: dict,
    monkeypatch: pytest.MonkeyPatch,
):
    drawn = []
    draw = Figure.draw

    def count(figure: Figure, renderer: object):
        drawn.append(renderer)
        draw(figure, renderer)

    with rc_context(style):
        figure = draw_line()
        place = figure.axes[0].get_position().bounds
        monkeypatch.setattr(Figure, "draw", count)
        exhibits.figure_to_png(figure)
        exhibits.figure_to_pdf(figure)

    assert len(drawn) == 2
    assert figure.axes[0].get_position().bounds == place


@pytest.mark.parametrize("height", [0.29, 0.58, 1.15, 2.3])
def test_pixels_are_those_of_the_file(height):
    """Also where a height in inches times 100 is just below a whole number."""
    figure = Figure(figsize=(2.9, height))
    figure.add_subplot().plot([1, 3, 2])

    pixels = exhibits.figure_to_array(figure, dpi=100)

    content = exhibits.figure_to_png(figure, dpi=100)
    image = Image.open(io.BytesIO(content))
    np.testing.assert_array_equal(pixels, np.array(image.convert("RGBA")))


def test_dollars_in_names_are_no_mathematics(tmp_path):
    name = "a$^_{x$b"  # ill-formed as mathematics
    figure, panels = exhibits.make_panels((1, 1), (4, 3), 0.1)
    axes = panels[0, 0]
    axes.plot([1, 1000], [1, 1000], label=name)
    axes.set(xlabel=name, ylabel=name)
    set_log_scale(axes, pd.Series([1, 1000]))
    axes.set_xticks([1, 2], labels=[name, name])
    exhibits.add_panel_title(axes, name, 4)
    exhibits.finish_figure(figure, name, pd.DataFrame)
    exhibit = exhibits.Exhibit("dollars", "", "", figure)

    png, pdf = exhibits.save_exhibit(exhibit, tmp_path)

    assert png.suffix == ".png"
    assert pdf.suffix == ".pdf"
    texts = [text.get_text() for text in figure.findobj(Text)]
    ticks = [label.get_text() for label in axes.get_yticklabels()]
    assert texts.count(name) >= 7
    assert "$" not in ticks[1]
