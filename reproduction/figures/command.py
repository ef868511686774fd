"""Draws the figures of the paper from finished runs.

    python -m reproduction.figures --runs=reproduction/evidence --output=figures

writes each figure as PNG and PDF, as wide as it is in print, and index.md: for
every figure its subject in the paper, and the runs that it shows. Scores are of
the runs. Pictures of networks are of the runs with weights, and else of
published models with the same settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    "output": ("paper_figures", "The folder for the figures and index.md."),
    "width": (
        "page",
        "The most that a figure is wide: page (6.75 inches) or column (3.25).",
    ),
    "only": (
        "",
        "Figures to draw, as 3e, separated by commas; by default all.",
    ),
}
DPI = 300  # of print


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
            pages += _write_figure(figure, evidence, output)
    text = "\n\n".join(pages)
    write_text(output / "index.md", f"{text}\n")


def _write_figure(
    figure: PaperFigure,
    evidence: Evidence,
    output: Path,
) -> list[str]:
    """Writes the pictures of a figure; returns its paragraphs of the index."""
    from tfcomp.figures import exhibits

    groups = select_runs(figure, evidence)
    slug = figure.name.replace("-", "_")
    lines = [f"## Figure {figure.name}", figure.shows]
    count = 0
    for caption, plot in draw_pictures(figure, groups, evidence):
        count += 1
        file = f"fig_{slug}_{count}"
        png = exhibits.figure_to_png(plot, dpi=DPI)
        pdf = exhibits.figure_to_pdf(plot)
        write_bytes(output / f"{file}.png", png)
        write_bytes(output / f"{file}.pdf", pdf)
        lines.append(f"![{figure.name}]({file}.png)")
        lines.append(caption)

    sources = describe_sources(figure, groups)
    lines.extend(sources)
    if count:
        pictures = "1 picture" if count == 1 else f"{count} pictures"
    elif figure.pictures:
        pictures = "needs networks that are not published"
        if find_networks(figure, groups):
            pictures = "left out for the reason above"
    else:
        pictures = "a scheme, which no run draws"
    print(f"{figure.name:8} {pictures}", flush=True)
    return lines


def describe_sources(figure: PaperFigure, groups: Groups) -> list[str]:
    """Describes which runs and networks a figure shows.

    Args:
        figure: The figure.
        groups: The runs that were selected, by label.

    Returns:
        A paragraph for the scores, one for the networks, and one for the labels
        without a network, as far as the figure has any.
    """
    kinds = {next(iter(picture)) for picture in figure.pictures}
    paragraphs = []
    if kinds - set(NETWORKS):
        scores = []
        for label, runs in groups.items():
            study = runs["study"].iloc[0]
            seeds = format_ranges(runs["seed"])
            scores.append(f"{label} ({study}, {seeds})")
        if scores:
            paragraphs.append(f"Scores: {'; '.join(scores)}.")

    if kinds.intersection(NETWORKS):
        networks = find_networks(figure, groups)
        folders = []
        for label, folder in networks.items():
            folders.append(f"{label} (`{folder.parent.name}/{folder.name}`)")
        if folders:
            paragraphs.append(f"Networks: {'; '.join(folders)}.")
        others = [label for label in figure.needs if label not in networks]
        if others:
            paragraphs.append(
                f"Without weights in these runs or among published models: "
                f"{'; '.join(others)}. `tfcomp sweep` with a flagfile of "
                "`reproduction/flagfiles` trains them."
            )
    return paragraphs


def format_ranges(seeds: Iterable[int]) -> str:
    """Formats seeds: `seed 0`, `seeds 0, 1, 100-119`."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    parts = []
    for run in ranges:
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(map(str, run))
    word = "seeds"
    if len(ranges) == 1 and len(ranges[0]) == 1:
        word = "seed"
    return f"{word} {', '.join(parts)}"


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
                figure,
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
    figure: PaperFigure,
    kind: str,
    arguments: Sequence[Any],
    groups: Groups,
    evidence: Evidence,
) -> Drawn:
    """Draws a picture of `figures.toml`; nothing without its runs.

    Args:
        figure: The figure of the paper.
        kind: The kind of the picture, as `each`.
        arguments: Values of its entry in `figures.toml`.
        groups: The runs of the figure, by label.
        evidence: All runs.
    """
    if kind in NETWORKS:
        with start_tensorflow():
            from reproduction.figures import network_pictures

        networks = find_networks(figure, groups)
        draw = network_pictures.DRAWERS[kind]
        return draw(networks, *arguments)
    if kind == "training":
        from reproduction.figures import data_pictures

        with start_tensorflow():
            return data_pictures.draw_training(*arguments)
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
    groups = select_runs(figure, evidence)
    plots = {}
    with fit_width(width):
        drawn = draw_pictures(figure, groups, evidence)
        for caption, plot in drawn:
            if isinstance(plot, Plot):
                plots[caption] = plot
    return plots


main = Command(__doc__, FLAGS, draw_figures)
