"""One self-contained HTML page on two levels: an answer, and folded sections.

Pictures and numbers are inside it; it links to PDF and CSV files beside it.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tfcomp.figures.exhibits import FILE_DPI, Exhibit

TEMPLATES = Path(__file__).with_name("templates")
SHOWN_ROWS = 24


class Links(str):
    """Text of a table's cell, whose parts link to addresses beside the page."""

    parts: Sequence[tuple[str, str]]

    def __new__(cls, parts: Sequence[tuple[str, str]]) -> "Links":
        """Joins texts; the address of one without a link is empty."""
        made = super().__new__(cls, " ".join(text for text, _ in parts))
        made.parts = parts
        return made


@dataclass(frozen=True)
class Section:
    """A part of a page: its finding is visible while it is folded."""

    anchor: str
    title: str
    introduction: str
    exhibits: Sequence[Exhibit]
    finding: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The first screen: sentences and exhibits."""

    sentences: Sequence[str]
    exhibits: Sequence[Exhibit]


def render_page(
    title: str,
    subtitle: str,
    answer: Answer,
    sections: Sequence[Section],
    folder: Path,
    explorer: str = "",
    place: str = "",
) -> str:
    """Returns a page as HTML, without empty sections.

    The folder has the pictures, and lies at a place beside the page.
    """
    return render_template(
        TEMPLATES / "page.html",
        title=title,
        subtitle=subtitle,
        answer=answer,
        explorer=Markup(explorer),
        place=place,
        sections=[s for s in sections if s.exhibits or s.texts or s.finding],
        read_png=lambda name: (folder / f"{name}.png").read_bytes(),
    )


def render_template(path: Path, **values: Any) -> str:
    """Renders a template, which may extend `base.html`."""
    loader = jinja2.FileSystemLoader([path.parent, TEMPLATES])
    environment = jinja2.Environment(loader=loader, autoescape=True)
    tools = (encode, find_width, format_cell, keep_filled)
    named = {tool.__name__: tool for tool in tools}
    environment.globals.update(named, shown_rows=SHOWN_ROWS)
    return environment.get_template(path.name).render(**values)


def encode(content: bytes) -> str:
    """Returns bytes in base64."""
    return base64.b64encode(content).decode("ascii")


def find_width(png: bytes) -> int:
    """Returns the width of a picture on a page, in CSS pixels."""
    return round(int.from_bytes(png[16:20], "big") * 96 / FILE_DPI)


def keep_filled(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns rows without columns that have no value in any row."""
    known = {name for row in rows for name, v in row.items() if v is not None}
    return [{n: v for n, v in row.items() if n in known} for row in rows]


def format_cell(value: object) -> str:
    """Formats a number with four significant digits, None as a dash."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else str(value)
