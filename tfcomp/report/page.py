"""One self-contained HTML page: pictures and numbers are inside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from tfcomp.figures.exhibits import Exhibit

TEMPLATES = Path(__file__).with_name("templates")
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
    folder: Path,
) -> str:
    """Renders the report as HTML.

    Args:
        title: Its heading.
        subtitle: A line below it.
        sections: Its parts; those without exhibits are left out.
        origins: Run name to the text of its `run.flags`.
        folder: Where the pictures of the exhibits are.

    Returns:
        The content of the page.
    """
    return render_template(
        TEMPLATES / "analysis.html",
        title=title,
        subtitle=subtitle,
        sections=[
            {
                "anchor": section.anchor,
                "title": section.title,
                "introduction": section.introduction,
                "parts": [_describe(e, folder) for e in section.exhibits],
            }
            for section in sections
            if section.exhibits
        ],
        origins=origins,
    )


def render_template(path: Path, **values: Any) -> str:
    """Renders a page from a template.

    Args:
        path: The template, which extends `base.html`: the frame and the style
            that all pages share.
        **values: What the template refers to.

    Returns:
        The content of the page.
    """
    loader = jinja2.FileSystemLoader([path.parent, TEMPLATES])
    environment = jinja2.Environment(loader=loader, autoescape=True)
    return environment.get_template(path.name).render(**values)


def encode_png(png: bytes) -> str:
    """Returns a picture in base64, to be embedded."""
    return base64.b64encode(png).decode("ascii")


def _describe(exhibit: Exhibit, folder: Path) -> dict[str, Any]:
    image = ""
    if exhibit.figure is not None:
        image = encode_png((folder / f"{exhibit.name}.png").read_bytes())
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
    """Returns a number with four significant digits, a dash if it is None."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
