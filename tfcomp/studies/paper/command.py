"""Draws every figure and table of the paper from finished runs.

    tfcomp study paper --runs='tensorboard_logs/*' --output=figures

writes PNG files and index.md: for every figure its subject in the paper, the
runs that were used, and a command for missing runs. Pictures of scores are
drawn from packed evidence, too; pictures of networks need run folders. Without
--runs it draws figures that need no run, and lists all commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError, suggest
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.files import make_folder, write_bytes, write_text
from tfcomp.storage.output_folders import check_folder
from tfcomp.studies import Study
from tfcomp.studies.claims.evidence import Evidence, read_some_evidence
from tfcomp.studies.paper.paper_figure import (
    NEED_NETWORKS,
    Drawer,
    Found,
    PaperFigure,
    make_slug,
    read_figures,
)

FLAGS = {
    "runs": (
        "",
        "Run folders, folders that contain them, or packed evidence: patterns "
        "with *, separated by commas.",
    ),
    "output": ("paper_figures", "The folder for the figures and index.md."),
    "only": (
        "",
        "Figures to draw, separated by commas, or the beginning of their "
        "names, as 2 for 2a_d, 2e and 2f; by default all.",
    ),
    "format": ("png", "png or pdf."),
    "width": ("", "column (3.25 inches) or page (6.75); by default as needed."),
}
FORMATS = ("png", "pdf")
DPI = 200  # twice the resolution of the reports
TEMPLATE = Path(__file__).parent / "templates" / "index.md"


def draw_figures(settings: dict[str, Any]) -> int:
    """Draws the figures that have runs, and lists the missing runs.

    Raises ConfigError if there is no folder to write, nothing to read, or no
    such figure.
    """
    check_folder("output", settings["output"])
    figures = read_figures()
    asked = split_names(settings["only"]) or list(figures)
    names = [name for text in asked for name in _find_figures(text, figures)]
    if settings["format"] not in FORMATS:
        rule = f"must be among {', '.join(FORMATS)}"
        raise ConfigError("format", rule, settings["format"])
    runs = settings["runs"]
    evidence = read_some_evidence(runs) if runs else Evidence()
    output, command = Path(settings["output"]), settings["command"]
    chosen = [figures[name] for name in names]
    ending = settings["format"]
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.layout import fit_width

    with fit_width(settings["width"]):
        for entry in write_figures(chosen, evidence, output, command, ending):
            print(f"{entry.figure.name:8} {entry}", flush=True)
    for note in evidence.notes:
        print(f"note {note}")
    print(f"\nindex  {output / 'index.md'}")
    return 0


def _find_figures(text: str, figures: Mapping[str, Any]) -> list[str]:
    """Returns the figure of a name, or those whose names begin with it."""
    found = [text] if text in figures else []
    found = found or [name for name in figures if name.startswith(text)]
    if not found:
        hint = suggest(text, figures) or f" of {'; '.join(figures)}"
        raise ConfigError("only", f"must name figures{hint}", text)
    return found


def write_figures(
    figures: Iterable[PaperFigure],
    evidence: Evidence,
    output: Path,
    command: str = "",
    ending: str = "png",
) -> Iterator[Found]:
    """Writes pictures as they are drawn, and `index.md` after the last one.

    Yields what was made of each figure. The folder is made if need be; the
    command that makes it is shown.
    """
    from tfcomp.studies.claims.result_text import render_markdown

    make_folder(output)
    entries = []
    for figure in figures:
        found = figure.find(evidence)
        draw_pictures(found, output, ending)
        entries.append(found)
        yield found
    shown = {
        "entries": entries,
        "command": command,
        "num_runs": evidence.num_runs,
    }
    write_text(output / "index.md", render_markdown(TEMPLATE, shown))


def draw_pictures(found: Found, output: Path, ending: str) -> None:
    """Draws all pictures of a figure that its runs allow."""
    from tfcomp.figures.exhibits import figure_to_pdf, figure_to_png

    for picture in found.figure.pictures:
        kind, arguments = next(iter(picture)), picture.values()
        if kind in NEED_NETWORKS and not found.networks:
            continue
        try:
            drawn = _get_drawers(kind)[kind](found, *arguments)
        except RunError as error:  # a damaged network
            found.missing[str(error)] = ""
            continue
        for caption, content in drawn.items():
            if isinstance(content, str):
                found.tables[caption] = content
                continue
            number = len(found.pictures) + 1
            name = make_slug(f"fig {found.figure.name} {number}") + f".{ending}"
            file = figure_to_pdf(content) if ending == "pdf" else None
            file = file or figure_to_png(content, 256, DPI)
            write_bytes(output / name, file)
            found.pictures[caption] = name


def _get_drawers(kind: str) -> Mapping[str, Drawer]:
    with quiet_startup():  # datasets import TensorFlow
        if kind in NEED_NETWORKS:
            from tfcomp.studies.paper import network_pictures

            return network_pictures.DRAWERS
        from tfcomp.studies.paper import score_pictures

        return score_pictures.DRAWERS


STUDY = Study(
    "paper",
    __doc__,
    lambda: make_flags(FLAGS),
    draw_figures,
    # Its figures show the networks of the claims, and one long search.
    plan=("campaign/*", "threshold"),
)
main = STUDY.main
