"""Places of axes, and rendering: PNG, PDF and pixels, without a display."""

import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text

from tfcomp.config.errors import ConfigError
from tfcomp.figures import layout
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import figure_to_pdf, figure_to_png
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
