"""One self-contained HTML page: pictures and numbers are inside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from tfcomp.figures import figure_to_png
from tfcomp.figures.exhibits import Exhibit

SHOWN_ROWS = 24


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        anchor: Its name in links.
        title: A heading.
        introduction: What the section asks, in a sentence or two.
        exhibits: Its results.
    """

    anchor: str
    title: str
    introduction: str
    exhibits: Sequence[Exhibit]


def render_page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    origins: dict[str, str],
) -> str:
    """The report as HTML.

    Args:
        title: Its heading.
        subtitle: A line below it.
        sections: Its parts; those without exhibits are left out.
        origins: Run name to the text of its `run.flags`.
    """
    return render_template(
        Path(__file__).with_name("template.html"),
        title=title,
        subtitle=subtitle,
        sections=[_describe(s) for s in sections if s.exhibits],
        origins=origins,
    )


def render_template(path: Path, **values: Any) -> str:
    """A page from a template, with the style that all pages share."""
    environment = jinja2.Environment(autoescape=True)
    style = Path(__file__).with_name("style.css").read_text("utf-8")
    template = environment.from_string(path.read_text("utf-8"))
    return template.render(style=markupsafe.Markup(style), **values)


def encode_png(png: bytes) -> str:
    """A picture in base64, to be embedded."""
    return base64.b64encode(png).decode("ascii")


def _describe(section: Section) -> dict[str, Any]:
    return {
        "anchor": section.anchor,
        "title": section.title,
        "introduction": section.introduction,
        "parts": [_describe_exhibit(e) for e in section.exhibits],
    }


def _describe_exhibit(exhibit: Exhibit) -> dict[str, Any]:
    image = ""
    if exhibit.figure is not None:
        image = encode_png(figure_to_png(exhibit.figure))
    shown = exhibit.rows[:SHOWN_ROWS]
    return {
        "name": exhibit.name,
        "title": exhibit.title,
        "caption": exhibit.caption,
        "image": image,
        "file": f"{exhibit.name}.csv",
        "header": list(exhibit.rows[0]) if exhibit.rows else [],
        "rows": [[format_cell(v) for v in row.values()] for row in shown],
        "hidden_rows": len(exhibit.rows) - len(shown),
    }


def format_cell(value: object) -> str:
    """Four significant digits for numbers; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
