"""Names in scripts that the default font of matplotlib lacks."""

import io
from pathlib import Path

import pandas as pd
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager, get_data_path
from matplotlib.figure import Figure

from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import draw_curves

FAMILY = "Two Letters"


def write_font(path: Path, letters: str) -> None:
    """A font whose letters are bars of the full height."""
    pen = TTGlyphPen(None)
    for number, corner in enumerate([(0, 0), (0, 900), (400, 900), (400, 0)]):
        pen.lineTo(corner) if number else pen.moveTo(corner)
    pen.closePath()
    bar = pen.glyph()
    names = [".notdef", *(f"uni{ord(letter):04X}" for letter in letters)]

    builder = FontBuilder(1000)
    builder.setupGlyphOrder(names)
    codes = map(ord, letters)
    builder.setupCharacterMap(dict(zip(codes, names[1:], strict=True)))
    builder.setupGlyf(dict.fromkeys(names, bar))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (500, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    identity = {"familyName": FAMILY, "psName": FAMILY.replace(" ", "")}
    builder.setupNameTable({**identity, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A font with two letters, beside the fonts of matplotlib alone."""
    manager = font_manager.fontManager
    shipped = get_data_path()
    others = [e for e in manager.ttflist if str(e.fname).startswith(shipped)]
    monkeypatch.setattr(manager, "ttflist", others)
    exhibits.find_family.cache_clear()
    exhibits.say_boxes.cache_clear()
    write_font(tmp_path / "letters.ttf", "形状")
    manager.addfont(tmp_path / "letters.ttf")


def draw(name: str) -> Figure:
    table = pd.DataFrame({name: [0, 1], "b": [1, 0]})
    return draw_curves(table, xlabel=name, ylabel="y")


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("installed")
def test_a_font_that_has_the_letters_is_chosen(
    capsys: pytest.CaptureFixture,
) -> None:
    figure = draw("形 状\u200c é²")

    label = figure.axes[0].xaxis.label
    assert FAMILY in label.get_fontfamily()
    assert FAMILY not in figure.axes[0].yaxis.label.get_fontfamily()
    assert FAMILY.replace(" ", "").encode() in exhibits.figure_to_pdf(figure)
    assert exhibits.figure_to_array(figure).std() > 0
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("installed")
def test_letters_of_no_font_are_named_once(
    capsys: pytest.CaptureFixture,
) -> None:
    for _ in range(2):
        figure = draw("形 可")
        exhibits.figure_to_pdf(figure)
        exhibits.figure_to_png(figure)
        Figure.savefig(figure, io.BytesIO())  # as notebooks do

    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UserWarning, match="Glyph"):  # of other figures
        other = Figure()
        other.text(0, 0, "可")
        other.savefig(io.BytesIO())
