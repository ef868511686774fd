"""Sizes of figures and their text, and what is written to files."""

from unittest.mock import create_autospec, patch

import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text

from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import draw_curve_panels, draw_curves


def draw_line() -> Figure:
    return draw_curves(
        pd.DataFrame({"a": [0, 1]}),
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
def test_figures_for_print(width, style, inches, points):
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
        {"figure.autolayout": True},
        {"figure.constrained_layout.use": True},
    ],
)
def test_a_finished_figure_is_drawn_once(style):
    with rc_context(style):
        figure = draw_line()
        place = figure.axes[0].get_position().bounds
        draw = create_autospec(Figure.draw, side_effect=Figure.draw)
        with patch.object(Figure, "draw", draw):
            exhibits.figure_to_png(figure, dpi=20)

    assert draw.call_count == 1
    assert figure.axes[0].get_position().bounds == place


def test_dollars_in_names_are_no_mathematics():
    name = "a$^_{x$b"  # ill-formed as mathematics
    table = pd.DataFrame(
        {
            name: [1, 1000],
            "b": [1, 2],
        }
    )
    curves = {(name, line): table[[line]].T for line in table}

    figure = draw_curve_panels(
        curves,
        xlabel=name,
        log=[name],
    )

    assert exhibits.figure_to_png(figure, dpi=20)
    (axes,) = figure.axes
    texts = [text.get_text() for text in figure.findobj(Text)]
    ticks = [label.get_text() for label in axes.get_yticklabels()]
    assert texts.count(name) == 3  # title, label and legend
    assert "$" not in ticks[1]
