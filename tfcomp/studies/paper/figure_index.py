"""Draws figures of the paper into a folder, and says what is missing."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.config.errors import RunError
from tfcomp.config.quiet import quiet_startup
from tfcomp.storage.files import write_bytes, write_text
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.paper.paper_figure import (
    DRAWERS,
    Found,
    PaperFigure,
    make_slug,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BYTES = 300_000
# Pixels per inch, twice those of the reports, and colors; then what a noisy
# picture needs to stay small.
QUALITIES = ((200, 256), (200, 32), (140, 32), (100, 16))
TEMPLATE = Path(__file__).parent / "templates" / "index.md"


@dataclass
class Entry:
    """What was made of one figure.

    Attributes:
        missing: What is missing, and the command that makes it.
        pictures: Names of the files, by caption.
        tables: Tables in Markdown, by caption.
    """

    figure: PaperFigure
    found: Found
    missing: dict[str, str]
    pictures: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.figure.pictures:
            return "a scheme, not drawn"
        missing = "; ".join(self.missing)
        count = len(self.pictures) + len(self.tables)
        return f"{count} drawn" + (f", missing: {missing}" if missing else "")


def write_figures(
    figures: Iterable[PaperFigure],
    evidence: Evidence,
    output: Path,
    command: str = "",
) -> Iterator[Entry]:
    """Writes pictures as they are drawn, and `index.md` after the last one.

    Args:
        evidence: Runs and threshold studies.
        output: The folder; made if it does not exist.
        command: The command that makes it, to be shown.

    Yields:
        What was made of each figure.

    Raises:
        OSError: If the folder cannot be written.
    """
    import jinja2

    output.mkdir(parents=True, exist_ok=True)
    entries = []
    for figure in figures:
        entries.append(draw_entry(figure, evidence, output))
        yield entries[-1]
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    count = len(evidence.runs)
    text = template.render(entries=entries, command=command, num_runs=count)
    write_text(output / "index.md", text)


def draw_entry(figure: PaperFigure, evidence: Evidence, output: Path) -> Entry:
    """Draws all pictures of a figure that its runs allow."""
    found = figure.find(evidence)
    entry = Entry(figure, found, figure.list_missing(found))
    for kind, *arguments in (
        [next(iter(picture)), *picture.values()] for picture in figure.pictures
    ):
        module, function = DRAWERS[kind]
        if module == "network_pictures" and not found.networks:
            continue  # without TensorFlow
        try:
            with quiet_startup():
                pictures = importlib.import_module(
                    f"tfcomp.studies.paper.{module}"
                )
                drawn = getattr(pictures, function)(found, *arguments)
        except RunError as error:  # a damaged network
            entry.missing[str(error)] = ""
            continue
        for caption, content in drawn.items():
            if isinstance(content, str):
                entry.tables[caption] = content
                continue
            name = make_slug(f"fig {figure.name} {len(entry.pictures) + 1}")
            write_bytes(output / f"{name}.png", compress(content))
            entry.pictures[caption] = f"{name}.png"
    return entry


def compress(figure: Figure) -> bytes:
    """A PNG file of twice the usual resolution, smaller than the limit."""
    from tfcomp.figures.render import figure_to_png

    for dpi, num_colors in QUALITIES:
        picture = figure_to_png(figure, num_colors, dpi)
        if len(picture) < MAX_BYTES:
            break
    return picture
