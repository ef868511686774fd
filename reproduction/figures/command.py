"""Draws the figures of the paper from finished runs.

    python -m reproduction.figures --runs='tensorboard_logs/*' --output=figures

writes PNG files and index.md: for every figure its subject in the paper, the
runs that were used, and a command for missing runs. Pictures of scores are
drawn from packed evidence, too; pictures of networks need run folders or
published models. Without --runs it draws figures that need no run, and lists
all commands.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence, read_some_evidence
from reproduction.figures.paper_figure import (
    NEED_NETWORKS,
    Drawer,
    PaperFigure,
    make_slug,
    read_figures,
)
from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError, RunError, suggest
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import split_names
from tfcomp.storage.files import make_folder, write_bytes, write_text
from tfcomp.storage.output_folders import check_folder
from tfcomp.tables.read import print_left_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfcomp.figures.exhibits import Plot
    from tfcomp.figures.layout import Width

FLAGS = {
    "runs": (
        "",
        "Run folders, folders that contain them, packed evidence, or published "
        "models: patterns with *, separated by commas.",
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
    """Draws the figures that have runs, and lists the missing runs."""
    check_folder("output", settings["output"])
    figures = read_figures()
    asked = split_names(settings["only"]) or list(figures)
    chosen = [figure for text in asked for figure in _choose(text, figures)]
    if settings["format"] not in FORMATS:
        rule = f"must be among {', '.join(FORMATS)}"
        raise ConfigError("format", rule, settings["format"])
    runs = settings["runs"]
    evidence = read_some_evidence(runs) if runs else Evidence()
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.exhibits import use_own_style
    from tfcomp.figures.layout import fit_width

    with use_own_style(), fit_width(settings["width"]):
        write_figures(chosen, evidence, settings)
    print_left_out(evidence.notes)
    print(f"\nindex  {Path(settings['output'], 'index.md')}")
    return 0


def _choose(text: str, figures: Mapping[str, PaperFigure]) -> list[PaperFigure]:
    """Returns the figure of a name, or those whose names begin with it."""
    if text in figures:
        return [figures[text]]
    found = [figures[name] for name in figures if name.startswith(text)]
    if not found:
        hint = suggest(text, figures) or f" of {'; '.join(figures)}"
        raise ConfigError("only", f"must name figures{hint}", text)
    return found


def write_figures(
    figures: Sequence[PaperFigure],
    evidence: Evidence,
    settings: Mapping[str, Any],
) -> list[PaperFigure]:
    """Writes figures as they are drawn, and `index.md`; returns them."""
    output, entries = make_folder(Path(settings["output"])), []
    for figure in figures:
        entries.append(figure.find(evidence))
        write_pictures(entries[-1], output, settings["format"])
        print(f"{figure.name:8} {entries[-1]}", flush=True)
    shown = {"entries": entries, "num_runs": len(evidence.results.loaded)}
    given = [
        f"--{name}={settings[name]}" for name in FLAGS if settings.get(name)
    ]
    shown["command"] = shlex.join(
        ["python", "-m", "reproduction.figures", *given]
    )
    write_text(output / "index.md", _render(shown))
    return entries


def _render(shown: Mapping[str, Any]) -> str:
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    return template.render(shown)


def write_pictures(found: PaperFigure, output: Path, ending: str) -> None:
    """Writes all pictures of a figure that its runs allow."""
    from tfcomp.figures.exhibits import figure_to_pdf, figure_to_png

    for caption, figure in draw_pictures(found):
        slug = make_slug(f"fig {found.name} {len(found.files) + 1}")
        found.files[caption] = f"{slug}.{ending}"
        if ending == "pdf":
            content = figure_to_pdf(figure)
        else:
            content = figure_to_png(figure, 256, DPI)
        write_bytes(output / found.files[caption], content)


def draw_pictures(found: PaperFigure) -> Iterator[tuple[str, Figure]]:
    """Yields captions and pictures that the runs of a figure allow."""
    for picture in found.pictures:
        kind, arguments = next(iter(picture)), picture.values()
        if kind in NEED_NETWORKS and not found.networks:
            continue
        try:
            drawn = _get_drawers(kind)[kind](found, *arguments)
        except RunError as error:  # a damaged network
            found.missing[str(error)] = ""
            continue
        yield from drawn.items()


def plot_paper(
    name: str, *runs: str | Path, width: Width = ""
) -> dict[str, Plot]:
    """Draws the pictures of a figure of the paper, by caption.

    Args:
        name: As `3e`, or the beginning of names, as `2`.
        *runs: Folders of runs, packed evidence, and published models, whose
            networks are drawn; patterns with *.
        width: `column` (3.25 inches), `page` (6.75), or inches.

    Returns:
        Figures of matplotlib by caption; `data` of each is a table with a row
        for each mark, cell or pixel.

    Raises:
        ConfigError: If there is no such figure, or nothing matches the runs.

    Example:
        >>> drawn = plot_paper("3e", "reproduction/evidence/low_rank.csv.xz")
        >>> for caption, figure in drawn.items():
        ...     means = figure.data.query("mark == 'mean'")
        >>> means["row"].unique().tolist()
        ['none', 'entropy', 'variance', 'both']
    """
    from tfcomp.figures.exhibits import Plot
    from tfcomp.figures.layout import fit_width

    evidence = Evidence()
    if runs:
        evidence = read_some_evidence(",".join(map(str, runs)))
    figures = _choose(name, read_figures())
    with fit_width(width):
        drawn = [
            pair for f in figures for pair in draw_pictures(f.find(evidence))
        ]
    return {text: plot for text, plot in drawn if isinstance(plot, Plot)}


def _get_drawers(kind: str) -> Mapping[str, Drawer]:
    with quiet_startup():  # datasets import TensorFlow
        if kind in NEED_NETWORKS:
            from reproduction.figures import network_pictures

            return network_pictures.DRAWERS
        from reproduction.figures import score_pictures

        return score_pictures.DRAWERS


main = Command(__doc__, FLAGS, draw_figures)
