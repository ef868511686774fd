"""Pictures of trained networks: exhibits of the analysis report, and of units.

Imports TensorFlow. Of the seeds of a setting the first is shown, whatever it
shows.
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from reproduction.figures.paper_figure import Drawer, Drawn, PaperFigure
from reproduction.figures.unit_plots import draw_tuning
from tfcomp.datasets.views import make_map, restore
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.pictures import (
    choose_spread,
    describe_points,
    get_pixel_mask,
)
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models.loading import load_run
from tfcomp.report import output_section, stage_section
from tfcomp.report.page import make_exhibit
from tfcomp.report.report_build import make_landscapes, make_output_rows

# Networks in memory at a time; the figures on depth compare ten.
MAX_NETWORKS = 10


def draw_each(found: PaperFigure, name: str) -> Drawn:
    """Draws exhibits of `EACH` for every network by itself."""
    drawn, said = {}, set()
    for label, analysis in load_networks(found).items():
        for exhibit in EACH[name](analysis):
            if exhibit.figure is None:
                continue
            title = exhibit.title.removesuffix(f": {label}")
            words = [f"{label}. {title}.", exhibit.caption]
            # A caption that pictures share is shown once.
            drawn[" ".join(w for w in words if w not in said)] = exhibit.figure
            said.add(exhibit.caption)
    return drawn


def draw_outputs(found: PaperFigure, start: str) -> Drawn:
    """Plots outputs of all networks whose label has this start."""
    networks = load_networks(found, start)
    if not networks:
        return {}
    labels = [k.removeprefix(start).lstrip(", ") for k in networks]
    exhibit = make_output_rows([*networks.values()], labels)
    assert exhibit.figure is not None
    caption = f"{start}. {exhibit.caption}" if start else exhibit.caption
    return {caption: exhibit.figure}


def load_networks(
    found: PaperFigure, start: str = ""
) -> dict[str, RunAnalysis]:
    """Loads networks whose label has this start, named by it."""
    loaded = {}
    for label, folder in found.networks.items():
        if label.startswith(start):
            loaded[label] = _load(folder)
            loaded[label].name = label
    return loaded


@functools.lru_cache(MAX_NETWORKS)
def _load(folder: Path) -> RunAnalysis:
    return RunAnalysis.of_run(load_run(folder))


def show_superposition(analysis: RunAnalysis) -> list[Exhibit]:
    """Shows memorized outputs that share a factor, their sum, the output."""
    dataset, splits = analysis.dataset, analysis.splits
    shown = choose_spread(np.flatnonzero(splits.is_ood))
    outputs, grid = analysis.bright_outputs, splits.grid
    images = {
        f"ID, same {name}": [
            outputs[splits.is_id & (values == values[row])].mean(axis=0)
            for row in shown
        ]
        for name, values in zip(dataset.space.names, grid.T, strict=True)
    }
    means = np.stack([*images.values()], axis=2)  # [rows, pixels, factors]
    images["superposed"] = list(map(_fit, means, outputs[shown]))
    if analysis.superposed_inputs is not None:
        place = np.cumsum(splits.is_ood)[shown] - 1  # among OOD points
        codes = analysis.superposed_inputs[place].swapaxes(1, 2)
        images["superposed inputs"] = list(map(_fit, codes, outputs[shown]))
    images["output"] = outputs[shown]
    images["truth"] = analysis.bright_truth[shown]
    figure = draw_rows(
        {
            label: restore(dataset, np.stack(stack))
            for label, stack in images.items()
        },
        grid[shown] if dataset.has_position else None,
        get_pixel_mask(dataset),
        title=analysis.name,
        first_row=dataset.first_row,
        column_titles=describe_points(dataset, shown),
    )
    return [make_exhibit("superposition_images", figure)]


def _fit(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    return regressors @ np.linalg.lstsq(regressors, target, rcond=None)[0]


def show_units(analysis: RunAnalysis, *stages: int) -> list[Exhibit]:
    """Shows the units of some stages (by default all) that vary most."""
    plane = analysis.dataset.planes[0]
    place = f" with {plane.held}" if plane.held else ""
    names = [f"stage_{n}" for n in stages] or analysis.stages[1:-1]
    exhibits = []
    for stage in filter(analysis.stages.__contains__, names):
        tuning = analysis.tuning[stage]
        units = {
            f"unit {unit}, additive {tuning.additive_share[unit]:.2f}": (
                make_map(analysis.dataset, values)
            )
            for unit, values in zip(*analysis.shown_units[stage], strict=True)
        }
        title = f"{analysis.name}, {stage}"
        figure = draw_tuning(units, plane, title=title) if units else None
        exhibits.append(make_exhibit("units", figure, stage=stage, place=place))
    return exhibits


def show_embeddings(analysis: RunAnalysis, number: int) -> list[Exhibit]:
    """Shows the matrices (0) or the profiles (1) of every embedding."""
    return [
        stage_section.show_embedding(analysis, factor)[number]
        for factor in analysis.embeddings
    ]


EACH: dict[str, Callable[[RunAnalysis], Iterable[Exhibit]]] = {
    "errors": lambda analysis: [
        *make_landscapes([analysis]),
        make_output_rows([analysis]),
    ],
    "superposition": show_superposition,
    "grams": lambda analysis: [
        output_section.make_matrices(
            analysis, output_section.compute_grams(analysis.bright_outputs)
        )
    ],
    "volumes": stage_section.make_volume_maps,
    "embeddings": lambda analysis: show_embeddings(analysis, 0),
    "profiles": lambda analysis: show_embeddings(analysis, 1),
    "units": show_units,
    "first units": lambda analysis: show_units(analysis, 0),
    "early and late units": lambda analysis: show_units(analysis, 0, 3),
    "gap": lambda analysis: [
        output_section.make_images(*gap)
        for gap in output_section.list_scored_gaps([analysis])
    ],
    "manifold": lambda analysis: [
        stage_section.make_pca(analysis),
        *stage_section.try_umap(analysis),
    ],
}
DRAWERS: dict[str, Drawer] = {"each": draw_each, "rows": draw_outputs}
