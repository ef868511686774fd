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
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import quiet_startup
from tfcomp.config.settings import split_names
from tfcomp.storage.files import (
    check_folder,
    make_folder,
    write_bytes,
    write_text,
)
from tfcomp.tables.read import print_left_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfcomp.figures.exhibits import Plot, Width

FLAGS = {
    "runs": (
        "reproduction/evidence",
        "Run folders, folders that contain them, packed evidence, or published "
        "models: patterns with *, separated by commas.",
    ),
    "output": ("paper_figures", "The folder for the figures and index.md."),
    "only": (
        "",
        "Figures to draw, as 3e, separated by commas; by default all.",
    ),
}
DPI = 200  # twice the resolution of the reports


def draw_figures(settings: dict[str, Any]) -> int:
    """Draws the figures that have runs, and lists the missing runs."""
    check_folder("output", settings["output"])
    names = split_names(settings["only"]) or list(read_figures())
    figures = choose_figures(names)
    evidence = read_some_evidence(settings["runs"])
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.exhibits import use_own_style

    output = Path(settings["output"])
    with use_own_style():
        write_figures(figures, evidence, output)
    print_left_out(evidence.notes)
    print(f"\nindex  {output / 'index.md'}")
    return 0


def choose_figures(names: Sequence[str]) -> list[PaperFigure]:
    """Chooses figures by their names; raises a ConfigError for others."""
    figures = read_figures()
    unknown = set(names).difference(figures)
    if unknown:
        rule = f"must be among {', '.join(figures)}"
        raise ConfigError("only", rule, min(unknown))
    return [figures[name] for name in names]


def write_figures(
    figures: Sequence[PaperFigure],
    evidence: Evidence,
    output: Path,
) -> None:
    """Writes figures as they are drawn, and `index.md`."""
    from tfcomp.figures.exhibits import figure_to_png

    make_folder(output)
    pages = ["# Figures of the paper"]
    for figure in figures:
        groups = select_runs(figure, evidence)
        lines = [f"## Figure {figure.name}", figure.shows]
        for number, (caption, plot) in enumerate(
            draw_pictures(figure, groups, evidence), 1
        ):
            slug = figure.name.replace("-", "_")
            file = f"fig_{slug}_{number}.png"
            write_bytes(output / file, figure_to_png(plot, 256, DPI))
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
    if kind in NETWORKS:
        with quiet_startup():  # TensorFlow
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
        name: As `3e`.
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
    from tfcomp.figures.exhibits import Plot, fit_width

    evidence = Evidence()
    if runs:
        evidence = read_some_evidence(",".join(map(str, runs)))
    (figure,) = choose_figures([name])
    groups = select_runs(figure, evidence)
    plots = {}
    with fit_width(width):
        for caption, plot in draw_pictures(figure, groups, evidence):
            if isinstance(plot, Plot):
                plots[caption] = plot
    return plots


main = Command(__doc__, FLAGS, draw_figures)
