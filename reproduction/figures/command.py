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
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import quiet_startup
from tfcomp.config.run_flags import Command
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
    names = split_names(settings["only"])
    if not names:
        names = list(read_figures())
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
    """Writes figures as they are drawn, and `index.md`.

    Args:
        figures: The figures of the paper.
        evidence: The runs.
        output: The folder for the files.
    """
    make_folder(output)
    pages = ["# Figures of the paper"]
    for figure in figures:
        pages += _write_figure(figure, evidence, output)
        print(f"{figure.name:8} {len(figure.pictures)} pictures", flush=True)
    text = "\n\n".join(pages)
    write_text(output / "index.md", f"{text}\n")


def _write_figure(
    figure: PaperFigure,
    evidence: Evidence,
    output: Path,
) -> list[str]:
    """Writes the pictures of a figure; returns its paragraphs of the index."""
    from tfcomp.figures.exhibits import figure_to_png

    groups = select_runs(figure, evidence)
    slug = figure.name.replace("-", "_")
    lines = [f"## Figure {figure.name}", figure.shows]
    drawn = draw_pictures(figure, groups, evidence)
    for number, (caption, plot) in enumerate(drawn, 1):
        file = f"fig_{slug}_{number}.png"
        content = figure_to_png(plot, num_colors=256, dpi=DPI)
        write_bytes(output / file, content)
        lines.append(f"![{figure.name}]({file})")
        lines.append(caption)
    for label in figure.needs:
        lines.append(describe_runs(label, groups))
    return lines


def describe_runs(label: str, groups: Groups) -> str:
    """Describes in a line which runs of a label were used.

    Args:
        label: A label of `PaperFigure.needs`.
        groups: The runs that were selected, by label.
    """
    if label not in groups:
        return f"Missing: {label}"
    runs = groups[label]
    study = runs["study"].iloc[0]
    seeds = ", ".join(map(str, runs["seed"]))
    missing = ""
    if label not in find_networks(groups):
        missing = " (without a network)"
    return f"{label}: {study}, seeds {seeds}{missing}"


def draw_pictures(
    figure: PaperFigure,
    groups: Groups,
    evidence: Evidence,
) -> Iterator[tuple[str, Figure]]:
    """Yields captions and pictures that the runs of a figure allow.

    Args:
        figure: The figure of the paper.
        groups: Its runs, by label.
        evidence: All runs.
    """
    for picture in figure.pictures:
        kind = next(iter(picture))
        arguments = list(picture.values())
        try:
            drawn = draw_picture(
                kind,
                arguments,
                groups,
                evidence,
            )
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
    """Draws a picture of `figures.toml`; nothing without its runs.

    Args:
        kind: The kind of the picture, as `each`.
        arguments: Values of its entry in `figures.toml`.
        groups: The runs of the figure, by label.
        evidence: All runs.
    """
    if kind in NETWORKS:
        with quiet_startup():  # TensorFlow
            from reproduction.figures import network_pictures

        networks = find_networks(groups)
        draw = network_pictures.DRAWERS[kind]
        return draw(networks, *arguments)
    if kind == "claims":
        from reproduction.figures import claim_pictures

        name = arguments[0]
        return claim_pictures.DRAWERS[name](evidence)
    from reproduction.figures import score_pictures

    draw_scores = score_pictures.DRAWERS[kind]
    return draw_scores(evidence, groups, *arguments)


def plot_paper(
    name: str,
    *runs: str | Path,
    width: Width = "",
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
        patterns = ",".join(map(str, runs))
        evidence = read_some_evidence(patterns)
    (figure,) = choose_figures([name])
    groups = select_runs(figure, evidence)
    plots = {}
    with fit_width(width):
        drawn = draw_pictures(figure, groups, evidence)
        for caption, plot in drawn:
            if isinstance(plot, Plot):
                plots[caption] = plot
    return plots


main = Command(__doc__, FLAGS, draw_figures)
