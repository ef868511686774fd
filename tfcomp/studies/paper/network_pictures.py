"""Pictures of trained networks: exhibits of the analysis report, and of units.

Imports TensorFlow. Of the seeds of a setting the first is shown, whatever it
shows.
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.kernels import make_factorized_kernel
from tfcomp.datasets.views import restore
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.pictures import (
    choose_spread,
    describe_points,
    get_pixel_mask,
)
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures import image_rows
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.figures.tuning_plots import draw_tuning
from tfcomp.report import gap_section, kernel_section, manifold_section
from tfcomp.report.error_section import make_landscapes
from tfcomp.report.first_screen import make_output_rows
from tfcomp.report.layer_section import make_volume_maps
from tfcomp.report.manifold_section import show_embedding
from tfcomp.report.run_exhibits import show_run
from tfcomp.studies.paper.paper_figure import Drawer, Drawn, Found

# Networks in memory at a time; the figures on depth compare ten.
MAX_NETWORKS = 10


def draw_each(found: Found, name: str) -> Drawn:
    """Draws exhibits of `EACH` for every network by itself."""
    drawn, said = {}, set()
    for label, study in load_studies(found).items():
        for exhibit in EACH[name](study):
            if exhibit.figure is None:
                continue
            title = exhibit.title.removesuffix(f": {label}")
            words = [f"{label}. {title}.", exhibit.caption]
            # What pictures have in common is said once.
            drawn[" ".join(w for w in words if w not in said)] = exhibit.figure
            said.add(exhibit.caption)
    return drawn


def draw_rows(found: Found, start: str) -> Drawn:
    """Plots outputs of all networks whose label has this start."""
    studies = load_studies(found, start)
    if not studies:
        return {}
    labels = [k.removeprefix(start).lstrip(", ") for k in studies]
    exhibit = make_output_rows([*studies.values()], labels)
    assert exhibit.figure is not None
    caption = f"{start}. {exhibit.caption}" if start else exhibit.caption
    return {caption: exhibit.figure}


def load_studies(found: Found, start: str = "") -> dict[str, RunAnalysis]:
    """Loads networks whose label has this start, named by it."""
    chosen = {k: p for k, p in found.networks.items() if k.startswith(start)}
    studies = {label: load_study(path) for label, path in chosen.items()}
    for label, study in studies.items():
        study.name = label
    return studies


@functools.lru_cache(MAX_NETWORKS)
def load_study(path: Path) -> RunAnalysis:
    """Loads the network of a run."""
    return RunAnalysis(load_run(path))


def show_superposition(study: RunAnalysis) -> list[Exhibit]:
    """Shows memorized outputs that share a factor, their sum, the output."""
    words = (
        "Rows at held-out positions (titles): the mean ID output with the "
        "same value of a factor, for each of them, the best combination of "
        "these, the best combination of outputs for the mean codes of the same "
        "points (the published form of figure 1d, where the model has a code "
        "that can be averaged), the model's output, and the truth. Each image "
        "is scaled to its own maximum, since outputs can be faint; images "
        "without a background are not."
    )
    title, figure = "What an output is made of", draw_superposition(study)
    return [show_run(study, "superposition_images", title, words, figure)]


def draw_superposition(study: RunAnalysis) -> Figure:
    """Draws a row of images for each of some OOD points."""
    shown = choose_spread(np.flatnonzero(study.splits.is_ood))
    outputs, grid = study.bright_outputs, study.splits.grid
    known = study.splits.is_id
    names = [f"ID, same {name}" for name in study.dataset.space.names]
    images: dict[str, list] = {name: [] for name in [*names, "superposed"]}
    for row in shown:
        means = [
            _mean(outputs[known & (values == values[row])]) for values in grid.T
        ]
        combined = _fit(np.stack(means, axis=1), outputs[row])
        for label, image in zip(images, (*means, combined), strict=True):
            images[label].append(image)
    if study.superposed_inputs is not None:
        place = np.cumsum(study.splits.is_ood) - 1  # among OOD points
        images["superposed inputs"] = [
            _fit(study.superposed_inputs[place[row]].T, outputs[row])
            for row in shown
        ]
    images |= {"output": outputs[shown], "truth": study.bright_truth[shown]}
    return image_rows.draw_rows(
        {
            label: restore(study.dataset, np.stack(stack))
            for label, stack in images.items()
        },
        grid[shown] if study.dataset.has_position else None,
        get_pixel_mask(study.dataset),
        title=study.name,
        first_row=study.dataset.first_row,
        column_titles=describe_points(study.dataset, shown),
    )


def _mean(images: np.ndarray) -> np.ndarray:
    return images.mean(axis=0) if len(images) else np.zeros(images.shape[1])


def _fit(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    weights = np.linalg.lstsq(regressors, target, rcond=None)[0]
    return regressors @ weights


def show_kernel(study: RunAnalysis) -> list[Exhibit]:
    """Shows similarities of OOD outputs beside the binary factorized kernel."""
    is_ood = study.splits.is_ood
    grams = {
        "binary factorized": make_factorized_kernel(study.splits.grid[is_ood]),
        "outputs, cosine": compute_cosine_gram(study.bright_outputs[is_ood]),
    }
    figure = draw_gram_matrices(grams, int(is_ood.sum()), title=study.name)
    words = "Similarity of the outputs at all pairs of OOD points, x slowest."
    return [show_run(study, "kernel", "Kernel over OOD", words, figure)]


def show_grams(study: RunAnalysis) -> list[Exhibit]:
    """Shows all similarities of all outputs."""
    grams = kernel_section.compute_grams(study.bright_outputs)
    return [kernel_section.make_matrices(study, grams)]


def show_units(study: RunAnalysis, *stages: int) -> list[Exhibit]:
    """Shows the units of some stages (by default all) that vary most."""
    names = [f"stage_{n}" for n in stages] or study.stages[1:-1]
    exhibits = []
    for stage in filter(study.stages.__contains__, names):
        tuning = study.tuning[stage]
        plane = study.dataset.planes[0]
        place = f" with {plane.held}" if plane.held else ""
        words = (
            f"Activation of single units over the grid (left{place}) and its "
            "mean as a function of each factor. The first is the unit that "
            "varies most; each further one varies most in what the units "
            "before it leave unexplained. The held-out region is outlined or "
            "shaded."
        )
        units = {
            f"unit {unit}, additive {tuning.additive_share[unit]:.2f}": (
                study.dataset.make_map(values)
            )
            for unit, values in zip(*study.shown_units[stage], strict=True)
        }
        title = f"{study.name}, {stage}"
        figure = draw_tuning(units, plane, title=title) if units else None
        kind, heading = f"tuning_{stage}", f"Units of {stage}"
        exhibits.append(show_run(study, kind, heading, words, figure))
    return exhibits


def show_gap(study: RunAnalysis) -> list[Exhibit]:
    """Shows images across a gap beside the interpolation of its edges."""
    return [
        gap_section.make_images(study, curve, study.score_gap(curve))
        for curve in study.gaps
    ]


EACH: dict[str, Callable[[RunAnalysis], Iterable[Exhibit]]] = {
    "errors": lambda study: [
        make_landscapes([study]),
        make_output_rows([study]),
    ],
    "superposition": show_superposition,
    "kernel": show_kernel,
    "grams": show_grams,
    "volumes": make_volume_maps,
    "embeddings": lambda study: [
        show_embedding(study, factor)[0] for factor in study.embeddings
    ],
    "profiles": lambda study: [
        show_embedding(study, factor)[1] for factor in study.embeddings
    ],
    "units": show_units,
    "first units": lambda study: show_units(study, 0),
    "early and late units": lambda study: show_units(study, 0, 3),
    "gap": show_gap,
    "manifold": lambda study: [
        manifold_section.make_pca(study),
        *manifold_section.try_umap(study),
    ],
}
DRAWERS: dict[str, Drawer] = {"each": draw_each, "rows": draw_rows}
