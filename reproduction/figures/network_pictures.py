"""Pictures of trained networks: exhibits of the analysis report, and of units.

Imports TensorFlow. Of the seeds of a setting the first is shown, whatever it
shows.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from reproduction.figures.paper_figure import Drawn, FigureRuns
from tfcomp.datasets.views import restore
from tfcomp.figures.curve_plots import title_stage
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.pictures import (
    choose_spread,
    describe_points,
    get_pixel_mask,
    picture_error_curve,
    picture_maps,
)
from tfcomp.metrics.run_analysis import SHOWN_UNITS, RunAnalysis
from tfcomp.metrics.superposition import superpose
from tfcomp.models.loading import load_run
from tfcomp.report import output_section, stage_section
from tfcomp.report.page import make_exhibit
from tfcomp.report.report_build import make_landscapes, make_output_rows

# Networks in memory at a time; the figures on depth compare ten.
MAX_NETWORKS = 10


def draw_each(runs: FigureRuns, name: str) -> Drawn:
    """Draws exhibits of `EACH` for every network by itself.

    Args:
        runs: The runs of the figure.
        name: A name of `EACH`.
    """
    make_exhibits = EACH[name]
    drawn = {}
    said = set()
    for label, folder in runs.folders.items():
        analysis = load_network(folder, label)
        for exhibit in make_exhibits(analysis):
            if exhibit.figure is None:
                continue
            title = exhibit.title.removesuffix(f": {label}")
            caption = f"{label}. {title}."
            if exhibit.caption not in said:
                # A caption that pictures share is shown once.
                caption += f" {exhibit.caption}"
                said.add(exhibit.caption)
            drawn[caption] = exhibit.figure
    return drawn


def draw_outputs(runs: FigureRuns, start: str) -> Drawn:
    """Plots outputs of all networks whose label has this start.

    Args:
        runs: The runs of the figure.
        start: The start; empty for all networks.
    """
    analyses = []
    labels = []
    for label, folder in runs.folders.items():
        if label.startswith(start):
            analyses.append(load_network(folder, label))
            rest = label.removeprefix(start)
            labels.append(rest.lstrip(", "))
    if not analyses:
        return {}
    exhibit = make_output_rows(analyses, labels)
    assert exhibit.figure is not None
    caption = exhibit.caption
    if start:
        caption = f"{start}. {caption}"
    return {caption: exhibit.figure}


@functools.lru_cache(MAX_NETWORKS)
def load_network(folder: Path, label: str) -> RunAnalysis:
    """Loads a network, named by its label.

    Args:
        folder: The folder of its run.
        label: The name that pictures show.
    """
    run = load_run(folder)
    analysis = RunAnalysis.of_run(run)
    analysis.name = label
    return analysis


def show_superposition(analysis: RunAnalysis) -> list[Exhibit]:
    """Shows memorized outputs that share a factor, their sum, the output."""
    dataset = analysis.dataset
    splits = analysis.splits
    rows = choose_spread(np.flatnonzero(splits.is_ood))
    outputs = analysis.bright_outputs
    stacks = {}
    for name, values in zip(dataset.space.names, splits.grid.T, strict=True):
        means = []
        for row in rows:
            is_sharing = splits.is_id & (values == values[row])
            means.append(outputs[is_sharing].mean(axis=0))
        stacks[f"ID, same {name}"] = restore(dataset, np.stack(means))

    index = dataset.space.to_index(splits.grid)
    superposed, _ = superpose(index, outputs, splits.is_ood)
    stacks["superposed"] = restore(dataset, superposed[rows])
    if analysis.superposed_inputs is not None:
        combined = []
        places = np.cumsum(splits.is_ood)[rows] - 1  # among OOD points
        codes = analysis.superposed_inputs[places]
        for images, target in zip(codes, outputs[rows], strict=True):
            solution = np.linalg.lstsq(images.T, target, rcond=None)
            combined.append(solution[0] @ images)
        stacks["superposed inputs"] = restore(dataset, np.stack(combined))
    stacks["output"] = restore(dataset, outputs[rows])
    stacks["truth"] = restore(dataset, analysis.bright_truth[rows])
    positions = None
    if dataset.has_position:
        positions = splits.grid[rows]
    figure = draw_rows(
        stacks,
        positions,
        mask=get_pixel_mask(dataset),
        title=analysis.name,
        first_row=dataset.first_row,
        column_titles=describe_points(dataset, rows),
    )
    return [make_exhibit("superposition_images", figure)]


def show_units(
    analysis: RunAnalysis,
    numbers: Sequence[int] = (),
) -> list[Exhibit]:
    """Shows the units of hidden stages that vary most.

    Args:
        analysis: The network.
        numbers: The numbers of the stages; by default all.
    """
    exhibits = []
    stages = analysis.stages[1:-1]
    if numbers:
        stages = [stages[number] for number in numbers]
    for stage in stages:
        units, maps = analysis.explored_units[stage]
        names = [f"unit {unit}" for unit in units[:SHOWN_UNITS]]
        panels = dict(zip(names, maps[:SHOWN_UNITS], strict=True))
        if panels:
            figure = picture_maps(analysis.dataset, panels, "activation")
            exhibit = make_exhibit(
                "units",
                figure,
                stage=title_stage(stage),
            )
            exhibits.append(exhibit)
    return exhibits


def show_error_curve(analysis: RunAnalysis) -> list[Exhibit]:
    """Shows the error at every value of a factor with a gap."""
    if not analysis.gaps:
        return []
    figure = picture_error_curve(analysis.dataset, analysis.error)
    factor = analysis.curves[0].factor.name
    exhibit = make_exhibit(
        "error_curve",
        figure,
        factor=factor,
        run=analysis.name,
    )
    return [exhibit]


def show_grams(analysis: RunAnalysis) -> list[Exhibit]:
    """Shows the similarity of all outputs."""
    grams = output_section.compute_grams(analysis.bright_outputs)
    exhibit = output_section.make_matrices(analysis, grams)
    return [exhibit]


EACH: dict[str, Callable[[RunAnalysis], Iterable[Exhibit]]] = {
    "errors": lambda analysis: [
        *make_landscapes([analysis]),
        make_output_rows([analysis]),
    ],
    "superposition": show_superposition,
    "grams": show_grams,
    "volumes": stage_section.make_volume_maps,
    "embeddings": lambda analysis: [
        stage_section.show_embedding(analysis, factor)[0]
        for factor in analysis.embeddings
    ],
    "profiles": lambda analysis: [
        stage_section.show_embedding(analysis, factor)[1]
        for factor in analysis.embeddings
    ],
    "units": show_units,
    "units of stage 0": lambda analysis: show_units(analysis, [0]),
    "units of stages 0 and 3": lambda analysis: show_units(analysis, [0, 3]),
    "error curve": show_error_curve,
    "gap": lambda analysis: [
        output_section.make_images(*gap)
        for gap in output_section.list_scored_gaps([analysis])
    ],
    "manifold": lambda analysis: [
        stage_section.make_pca(analysis),
        *stage_section.try_umap(analysis),
    ],
}
