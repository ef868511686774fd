"""One self-contained HTML page: pictures and numbers are inside it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tfcomp.figures.exhibits import Exhibit

TEMPLATES = Path(__file__).with_name("templates")
SHOWN_ROWS = 24


@dataclass(frozen=True)
class Section:
    """A part of the report, which links call by its anchor.

    The introduction says in a sentence or two what the section asks.
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
    explorer: str = "",
) -> str:
    """Renders the report as HTML.

    Sections without exhibits are left out. `origins` are run names to the text
    of their `run.flags`; the folder has the pictures of the exhibits, and the
    explorer is HTML of `explorer_fragment`.
    """
    return render_template(
        TEMPLATES / "analysis.html",
        title=title,
        subtitle=subtitle,
        explorer=Markup(explorer),
        sections=[section for section in sections if section.exhibits],
        origins=origins,
        shown_rows=SHOWN_ROWS,
        format_cell=format_cell,
        read_png=lambda name: encode_png((folder / f"{name}.png").read_bytes()),
    )


def render_template(path: Path, **values: Any) -> str:
    """Renders a page from a template and the values that it refers to.

    The template extends `base.html`: the frame and the style of all pages.
    """
    loader = jinja2.FileSystemLoader([path.parent, TEMPLATES])
    environment = jinja2.Environment(loader=loader, autoescape=True)
    return environment.get_template(path.name).render(**values)


def encode_png(png: bytes) -> str:
    """Returns a picture in base64, to be embedded."""
    return base64.b64encode(png).decode("ascii")


def format_cell(value: object) -> str:
    """Returns a number with four significant digits, a dash if it is None."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
