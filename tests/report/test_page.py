"""The page of a report: names and texts are shown, never run."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Answer, Section, render_page

EVIL = "\"'><script>evil()</script><img src=x onerror=evil()>&lt;"


class Reader(HTMLParser):
    """Collects the tags, their handlers and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.count[tag] += 1
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_texts_are_escaped(tmp_path: Path) -> None:
    exhibit = Exhibit(EVIL, EVIL, EVIL, rows=[{EVIL: EVIL}])
    section = Section(EVIL, EVIL, EVIL, [exhibit], EVIL, {EVIL: EVIL})
    answer = Answer([EVIL], [exhibit])
    plain = Reader()
    plain.feed(render_page("", "", Answer([], []), [], tmp_path))
    reader = Reader()
    reader.feed(render_page(EVIL, EVIL, answer, [section], tmp_path))
    assert reader.count["script"] == plain.count["script"] == 1
    assert reader.count["img"] == plain.count["img"] == 1
    assert not {"onerror", "src"} & reader.names
    # In title, heading, sentence, subtitle, contents, section, finding, text
    # and its name, and of either exhibit title, caption and table.
    assert reader.text.count(EVIL) == 18


def test_what_does_not_apply_is_not_shown(tmp_path: Path) -> None:
    rows = [{"run": "a", "x": None, "y": 1.0}, {"run": "b", "x": None, "y": 2}]
    filled = Section("b", "Has numbers", "", [Exhibit("t", "T", "", rows=rows)])
    empty = Section("a", "Does not apply", "", [])
    page = render_page("", "", Answer([], []), [empty, filled], tmp_path)
    assert "Has numbers" in page and "Does not apply" not in page
    assert ">y</th>" in page and ">x</th>" not in page


def test_texts_of_pictures_say_what_is_shown() -> None:
    figure = draw_curves(
        [0, 1],
        {"one": [0, 1], "two": [1, 2]},
        xlabel="place",
        ylabel="R²",
        title="all",
    )
    shown = Exhibit("f", "Course", "", figure).alt
    assert (
        shown
        == "Course. from left to right: place; upwards: R²; shown: one, two."
    )
