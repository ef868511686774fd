"""Names in scripts that the default font of matplotlib lacks."""

import io
from pathlib import Path

import pandas as pd
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import draw_curves

# Two letters that only this font of matplotlib has.
FAMILY = "DejaVu Sans Mono"
LETTERS = "⌔ ⌵"


@pytest.fixture(autouse=True)
def _few_fonts(monkeypatch: pytest.MonkeyPatch):
    """The default font, its relatives, and the font of boxes."""
    fonts = []
    for entry in font_manager.fontManager.ttflist:
        if Path(entry.fname).name.startswith(("DejaVuSans", "LastResort")):
            fonts.append(entry)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    exhibits.find_family.cache_clear()
    exhibits.say_boxes.cache_clear()


def draw(name: str) -> Figure:
    table = pd.DataFrame(
        {
            name: [0, 1],
            "b": [1, 0],
        }
    )
    return draw_curves(
        table,
        xlabel=name,
        ylabel="y",
    )


@pytest.mark.filterwarnings("error")
def test_a_font_that_has_the_letters_is_chosen(capsys):
    figure = draw(f"{LETTERS}\u200c é²")

    (axes,) = figure.axes
    embedded = FAMILY.replace(" ", "").encode()
    pixels = exhibits.figure_to_array(figure)
    assert FAMILY in axes.xaxis.label.get_fontfamily()
    assert FAMILY not in axes.yaxis.label.get_fontfamily()
    assert embedded in exhibits.figure_to_pdf(figure)
    assert pixels.std() > 0
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("error")
def test_letters_of_no_font_are_named_once(capsys):
    figure = draw(f"{LETTERS} 可")
    exhibits.figure_to_png(figure, dpi=20)
    Figure.savefig(figure, io.BytesIO(), dpi=20)  # as notebooks do
    draw(f"{LETTERS} 可")

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    with pytest.raises(UserWarning, match="Glyph"):  # of other figures
        other = Figure()
        other.text(0, 0, "可")
        other.savefig(io.BytesIO(), dpi=20)
