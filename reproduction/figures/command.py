"""Draws the figures of the paper from finished runs.

    python -m reproduction.figures --runs=reproduction/evidence --output=figures

writes PNG files and index.md: for every figure its subject in the paper, the
runs that were used, and what is missing. Pictures of scores are drawn from
packed evidence, too; pictures of networks need run folders or published
models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence, read_some_evidence
from reproduction.figures.paper_figure import (
    NETWORKS,
    Drawn,
    Groups,
    PaperFigure,
    find_networks,
    read_figures,
    select_runs,
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
        "reproduction/evidence",
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
DPI = 200  # twice the resolution of the reports


def draw_figures(settings: dict[str, Any]) -> int:
    """Draws the figures that have runs, and lists the missing runs."""
    check_folder("output", settings["output"])
    figures = choose_figures(split_names(settings["only"]) or [""])
    if settings["format"] not in ("png", "pdf"):
        rule = "must be png or pdf"
        raise ConfigError("format", rule, settings["format"])
    evidence = read_some_evidence(settings["runs"])
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.exhibits import use_own_style
    from tfcomp.figures.layout import fit_width

    output = Path(settings["output"])
    with use_own_style(), fit_width(settings["width"]):
        write_figures(figures, evidence, output, settings["format"])
    print_left_out(evidence.notes)
    print(f"\nindex  {output / 'index.md'}")
    return 0


def choose_figures(names: Sequence[str]) -> list[PaperFigure]:
    """Chooses the figures of some names, or whose names begin with them."""
    figures = read_figures()
    chosen = []
    for name in names:
        if name in figures:
            chosen.append(figures[name])
            continue
        matches = [figures[n] for n in figures if n.startswith(name)]
        if not matches:
            hint = suggest(name, figures) or f" of {'; '.join(figures)}"
            raise ConfigError("only", f"must name figures{hint}", name)
        chosen += matches
    return chosen


def write_figures(
    figures: Sequence[PaperFigure],
    evidence: Evidence,
    output: Path,
    ending: str = "png",
) -> None:
    """Writes figures as they are drawn, and `index.md`."""
    from tfcomp.figures.exhibits import figure_to_pdf, figure_to_png

    make_folder(output)
    pages = ["# Figures of the paper"]
    for figure in figures:
        groups = select_runs(figure, evidence)
        lines = [f"## Figure {figure.name}", figure.shows]
        for number, (caption, plot) in enumerate(
            draw_pictures(figure, groups, evidence), 1
        ):
            slug = figure.name.replace("-", "_")
            file = f"fig_{slug}_{number}.{ending}"
            if ending == "pdf":
                content = figure_to_pdf(plot)
            else:
                content = figure_to_png(plot, 256, DPI)
            write_bytes(output / file, content)
            lines += [f"![{figure.name}]({file})", caption]
        for label in figure.needs:
            lines.append(describe_runs(label, groups))
        print(f"{figure.name:8} {len(figure.pictures)} pictures", flush=True)
        pages += lines
    write_text(output / "index.md", "\n\n".join(pages) + "\n")


def describe_runs(label: str, groups: Groups) -> str:
    """Describes in a line which runs of a label were used."""
    if label not in groups:
        return f"Missing: {label}"
    runs = groups[label]
    seeds = ", ".join(map(str, runs["seed"]))
    missing = "" if label in find_networks(groups) else " (without a network)"
    return f"{label}: {runs['study'].iloc[0]}, seeds {seeds}{missing}"


def draw_pictures(
    figure: PaperFigure, groups: Groups, evidence: Evidence
) -> Iterator[tuple[str, Figure]]:
    """Yields captions and pictures that the runs of a figure allow."""
    for picture in figure.pictures:
        kind = next(iter(picture))
        arguments = list(picture.values())
        try:
            drawn = draw_picture(kind, arguments, groups, evidence)
        except RunError as error:  # a damaged network
            print_left_out([str(error)])
        else:
            yield from drawn.items()


def draw_picture(
    kind: str,
    arguments: Sequence[Any],
    groups: Groups,
    evidence: Evidence,
) -> Drawn:
    """Draws a picture of `figures.toml`; nothing without its runs."""
    with quiet_startup():  # datasets import TensorFlow
        if kind in NETWORKS:
            from reproduction.figures import network_pictures

            networks = find_networks(groups)
            return network_pictures.DRAWERS[kind](networks, *arguments)
        if kind == "claims":
            from reproduction.figures import claim_pictures

            return claim_pictures.DRAWERS[arguments[0]](evidence)
        from reproduction.figures import score_pictures

        return score_pictures.DRAWERS[kind](evidence, groups, *arguments)


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
    plots: dict[str, Figure] = {}
    with fit_width(width):
        for figure in choose_figures([name]):
            groups = select_runs(figure, evidence)
            plots.update(draw_pictures(figure, groups, evidence))
    return {text: p for text, p in plots.items() if isinstance(p, Plot)}


main = Command(__doc__, FLAGS, draw_figures)
