"""Pictures of trained networks: exhibits of the analysis report.

Imports TensorFlow. Of the seeds of a setting the first is shown, whatever it
shows.
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.kernels import make_factorized_kernel
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report import gap_section, kernel_section, manifold_section
from tfcomp.report.error_section import make_landscapes
from tfcomp.report.first_screen import make_output_rows
from tfcomp.report.layer_section import make_volume_maps
from tfcomp.report.manifold_section import show_embedding
from tfcomp.report.run_exhibits import show_run
from tfcomp.studies.paper.network_exhibits import make_images, make_units
from tfcomp.studies.paper.paper_figure import Drawn, Found

# Networks in memory at a time; the figures on depth compare ten.
MAX_NETWORKS = 10


def draw_each(found: Found, name: str) -> Drawn:
    """Exhibits of `EACH` of every network by itself."""
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
    """What networks whose label starts so draw at the same positions."""
    studies = load_studies(found, start)
    if not studies:
        return {}
    labels = [k.removeprefix(start).lstrip(", ") for k in studies]
    exhibit = make_output_rows([*studies.values()], labels)
    caption = f"{start}. {exhibit.caption}" if start else exhibit.caption
    return {caption: exhibit.figure}


def load_studies(found: Found, start: str = "") -> dict[str, Study]:
    """The networks, each named by its label, which starts so."""
    chosen = {k: p for k, p in found.networks.items() if k.startswith(start)}
    studies = {label: load_study(path) for label, path in chosen.items()}
    for label, study in studies.items():
        study.name = label
    return studies


@functools.lru_cache(MAX_NETWORKS)
def load_study(path: Path) -> Study:
    """Loads the network of a run."""
    return Study(load_run(path))


def show_kernel(study: Study) -> list[Exhibit]:
    """Similarities of OOD outputs beside the binary factorized kernel."""
    is_ood = study.splits.is_ood
    grams = {
        "binary factorized": make_factorized_kernel(study.splits.grid[is_ood]),
        "outputs, cosine": compute_cosine_gram(study.bright_outputs[is_ood]),
    }
    figure = draw_gram_matrices(grams, int(is_ood.sum()), title=study.name)
    words = "Similarity of the outputs at all pairs of OOD points, x slowest."
    return [show_run(study, "kernel", "Kernel over OOD", words, figure)]


def show_grams(study: Study) -> list[Exhibit]:
    """All similarities of all outputs."""
    grams = kernel_section.compute_grams(study.bright_outputs)
    return [kernel_section.make_matrices(study, grams)]


def show_units(study: Study, *stages: int) -> list[Exhibit]:
    """Units of some stages, all of them by default."""
    names = [f"stage_{n}" for n in stages] or study.stages[1:-1]
    return [make_units(study, n) for n in names if n in study.stages]


def show_gap(study: Study) -> list[Exhibit]:
    """Images across a gap beside the interpolation of its edges."""
    return [
        gap_section.make_images(study, curve, study.score_gap(curve))
        for curve in study.gaps
    ]


EACH: dict[str, Callable[[Study], Iterable[Exhibit]]] = {
    "errors": lambda study: [
        make_landscapes([study]),
        make_output_rows([study]),
    ],
    "superposition": lambda study: [make_images(study)],
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
