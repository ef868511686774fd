"""Names in scripts that the default font of matplotlib lacks."""

import io
from pathlib import Path

import pandas as pd
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.figure import Figure

from tfcomp.figures import exhibits
from tfcomp.figures.curve_plots import draw_curves

FAMILY = "Two Letters"


def write_font(path: Path, letters: str):
    """A font whose letters are triangles of the full height."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    pen.lineTo((0, 900))
    pen.lineTo((400, 900))
    pen.closePath()
    triangle = pen.glyph()
    characters = {ord(letter): f"uni{ord(letter):04X}" for letter in letters}
    names = [".notdef", *characters.values()]

    builder = FontBuilder(1000)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(characters)
    builder.setupGlyf(dict.fromkeys(names, triangle))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (500, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    identity = {"familyName": FAMILY, "psName": FAMILY.replace(" ", "")}
    builder.setupNameTable({**identity, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A font with two letters, beside the default one and that of boxes."""
    manager = font_manager.fontManager
    default = []
    for entry in manager.ttflist:
        file = Path(entry.fname).name
        if file.startswith(("DejaVuSans", "LastResort")):
            default.append(entry)
    monkeypatch.setattr(manager, "ttflist", default)
    exhibits.find_family.cache_clear()
    exhibits.say_boxes.cache_clear()
    write_font(tmp_path / "letters.ttf", "形状")
    manager.addfont(tmp_path / "letters.ttf")


def draw(name: str) -> Figure:
    table = pd.DataFrame({name: [0, 1], "b": [1, 0]})
    return draw_curves(table, xlabel=name, ylabel="y")


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("installed")
def test_a_font_that_has_the_letters_is_chosen(capsys):
    figure = draw("形 状\u200c é²")

    (axes,) = figure.axes
    embedded = FAMILY.replace(" ", "").encode()
    pixels = exhibits.figure_to_array(figure)
    assert FAMILY in axes.xaxis.label.get_fontfamily()
    assert FAMILY not in axes.yaxis.label.get_fontfamily()
    assert embedded in exhibits.figure_to_pdf(figure)
    assert pixels.std() > 0
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("installed")
def test_letters_of_no_font_are_named_once(capsys):
    figure = draw("形 可")
    exhibits.figure_to_pdf(figure)
    exhibits.figure_to_png(figure, dpi=20)
    Figure.savefig(figure, io.BytesIO(), dpi=20)  # as notebooks do
    draw("形 可")

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    with pytest.raises(UserWarning, match="Glyph"):  # of other figures
        other = Figure()
        other.text(0, 0, "可")
        other.savefig(io.BytesIO())
