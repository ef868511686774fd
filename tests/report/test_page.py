"""The page of a report: names and texts are shown, never run."""

from html.parser import HTMLParser
from pathlib import Path

from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section, render_page

EVIL = "\"'><script>evil()</script><img src=x onerror=evil()>&lt;"


class Reader(HTMLParser):
    """Collects the tags, their handlers and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_texts_are_escaped(tmp_path: Path) -> None:
    exhibit = Exhibit(EVIL, EVIL, EVIL, rows=[{EVIL: EVIL}])
    section = Section(EVIL, EVIL, EVIL, [exhibit])
    reader = Reader()
    reader.feed(render_page(EVIL, EVIL, [section], {EVIL: EVIL}, tmp_path))
    assert not {"script", "img"} & reader.tags
    assert not {"onerror", "src"} & reader.names
    # In title, heading, subtitle, contents, section, exhibit, table, origin.
    assert reader.text.count(EVIL) == 14
