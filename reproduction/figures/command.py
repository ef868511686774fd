"""Draws the figures of the paper from finished runs.

    python -m reproduction.figures --runs=reproduction/evidence --output=figures

writes each figure as PNG and PDF, as wide as it is in print, and index.md: for
every figure its subject in the paper, and the runs that it shows. Scores are of
the runs. Pictures of networks are of the runs with weights, and else of
published models with the same settings.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence, read_some_evidence
from reproduction.figures.paper_figure import (
    NETWORKS,
    Drawn,
    FigureRuns,
    PaperFigure,
    read_figures,
)
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import start_tensorflow
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
    "width": (
        "page",
        "The most that a figure is wide: page (6.75 inches) or column (3.25).",
    ),
    "output": ("paper_figures", "The folder for the figures and index.md."),
    "only": (
        "",
        "Figures to draw, as 3e, separated by commas; by default all.",
    ),
}
DPI = 300  # of print
MISSING = (
    "missing: `tfcomp sweep` with one of `reproduction/flagfiles` trains it"
)
# The function that draws each kind of pictures of figures.toml.
DRAWERS = {
    "stages": "score_pictures:draw_stages",
    "search": "score_pictures:draw_search",
    "scores": "score_pictures:draw_scores",
    "claims": "claim_pictures:draw_claims",
    "training": "data_pictures:draw_training",
    "each": "network_pictures:draw_each",
    "rows": "network_pictures:draw_outputs",
}
TENSORFLOW = ("training", *NETWORKS)  # kinds whose modules import it


def draw_figures(settings: dict[str, Any]) -> int:
    """Draws the figures that have runs, and lists the missing runs."""
    check_folder("output", settings["output"])
    names = split_names(settings["only"])
    figures = choose_figures(names)
    evidence = read_some_evidence(settings["runs"])
    # Imported here: bad flags must be answered without matplotlib.
    from tfcomp.figures.exhibits import use_own_style

    output = Path(settings["output"])
    with use_own_style():
        write_figures(
            figures,
            evidence,
            output,
            settings["width"],
        )
    print_left_out(evidence.notes)
    print(f"\nindex  {output / 'index.md'}")
    return 0


def choose_figures(names: Sequence[str]) -> list[PaperFigure]:
    """Chooses figures by their names, or all; ConfigError for others."""
    figures = read_figures()
    unknown = set(names).difference(figures)
    if unknown:
        rule = f"must be among {', '.join(figures)}"
        raise ConfigError("only", rule, min(unknown))
    return [figures[name] for name in names or figures]


def write_figures(
    figures: Sequence[PaperFigure],
    evidence: Evidence,
    output: Path,
    width: Width = "page",
) -> None:
    """Writes figures as they are drawn, and `index.md`.

    Args:
        figures: The figures of the paper.
        evidence: The runs.
        output: The folder for the files.
        width: The most that a figure is wide, as for `fit_width`.
    """
    from tfcomp.figures.exhibits import fit_width

    pages = ["# Figures of the paper"]
    with fit_width(width, is_most=True):
        make_folder(output)
        for figure in figures:
            runs = FigureRuns(figure, evidence)
            pages += _write_figure(runs, output)
    text = "\n\n".join(pages)
    write_text(output / "index.md", f"{text}\n")


def _write_figure(runs: FigureRuns, output: Path) -> list[str]:
    """Writes the pictures of a figure; returns its paragraphs of the index."""
    from tfcomp.figures import exhibits

    figure = runs.figure
    name = figure.name
    slug = name.replace("-", "_")
    lines = [
        f"## Figure {name}",
        figure.shows,
    ]
    count = 0
    for caption, plot in draw_pictures(runs):
        count += 1
        file = f"fig_{slug}_{count}"
        png = exhibits.figure_to_png(plot, dpi=DPI)
        pdf = exhibits.figure_to_pdf(plot)
        write_bytes(output / f"{file}.png", png)
        write_bytes(output / f"{file}.pdf", pdf)
        lines.append(f"![{name}]({file}.png)")
        lines.append(caption)
    sources = describe_sources(runs)
    print(f"{name:8} pictures: {count}", flush=True)
    if not count:
        print(*sources, sep="\n")
    return lines + sources


def describe_sources(runs: FigureRuns) -> list[str]:
    """Lists which runs and networks a figure shows, by label.

    Args:
        runs: The runs of the figure.
    """
    kinds = {next(iter(picture)) for picture in runs.figure.pictures}
    if not kinds:
        return ["A scheme, which no run draws."]
    has_scores = not kinds.issubset(NETWORKS)
    has_networks = not kinds.isdisjoint(NETWORKS)
    lines = []
    for label in runs.figure.needs:
        sources = []
        if has_scores and label in runs.groups:
            table = runs.groups[label].runs
            study = table["study"].iloc[0]
            seeds = map(str, table["seed"])
            sources.append(f"scores of {study}, seeds {', '.join(seeds)}")
        if has_networks and label in runs.folders:
            folder = runs.folders[label]
            sources.append(f"network `{folder.parent.name}/{folder.name}`")
        text = "; ".join(sources)
        lines.append(f"- {label}: {text or MISSING}")
    return lines


def find_drawer(kind: str) -> Callable[..., Drawn]:
    """Imports the function that draws a kind of pictures."""
    name = f"{__package__}.{DRAWERS[kind]}"
    if kind not in TENSORFLOW:
        return pkgutil.resolve_name(name)
    with start_tensorflow():
        return pkgutil.resolve_name(name)


def draw_pictures(runs: FigureRuns) -> Iterator[tuple[str, Figure]]:
    """Yields captions and pictures that the runs of a figure allow.

    Args:
        runs: The runs of the figure.
    """
    for picture in runs.figure.pictures:
        kind = next(iter(picture))
        draw = find_drawer(kind)
        arguments = picture.values()
        try:
            drawn = draw(runs, *arguments)
        except RunError as error:  # a damaged network
            print_left_out([str(error)])
        else:
            yield from drawn.items()


def plot_paper(
    name: str,
    *runs: str | Path,
    width: Width = "",
) -> dict[str, Plot]:
    """Draws the pictures of a figure of the paper, by caption.

    Args:
        name: As `3e`.
        *runs: Folders of runs and packed evidence; patterns with *. Without
            weights in them, networks of published models are drawn.
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
    plots = {}
    with fit_width(width):
        for caption, plot in draw_pictures(FigureRuns(figure, evidence)):
            if isinstance(plot, Plot):
                plots[caption] = plot
    return plots


main = Command(__doc__, FLAGS, draw_figures)
