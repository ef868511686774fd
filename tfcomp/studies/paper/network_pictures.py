"""Pictures of trained networks: exhibits of the analysis report.

Imports TensorFlow. Of the seeds of a setting the first is shown, whatever it
shows.
"""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report import gap_section, kernel_section, manifold_section
from tfcomp.report.error_section import make_landscapes
from tfcomp.report.first_screen import make_output_rows
from tfcomp.report.manifold_section import show_embedding
from tfcomp.report.stage_section import make_volume_maps
from tfcomp.studies.paper.paper_figure import Drawer, Drawn, PaperFigure

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
    return RunAnalysis(load_run(folder))


EACH: dict[str, Callable[[RunAnalysis], Iterable[Exhibit]]] = {
    "errors": lambda analysis: [
        make_landscapes([analysis]),
        make_output_rows([analysis]),
    ],
    "grams": lambda analysis: [
        kernel_section.make_matrices(
            analysis, kernel_section.compute_grams(analysis.bright_outputs)
        )
    ],
    "volumes": make_volume_maps,
    "embeddings": lambda analysis: [
        show_embedding(analysis, factor)[0] for factor in analysis.embeddings
    ],
    "profiles": lambda analysis: [
        show_embedding(analysis, factor)[1] for factor in analysis.embeddings
    ],
    "gap": lambda analysis: [
        gap_section.make_images(*gap)
        for gap in gap_section.list_scored_gaps([analysis])
    ],
    "manifold": lambda analysis: [
        manifold_section.make_pca(analysis),
        *manifold_section.try_umap(analysis),
    ],
}
DRAWERS: dict[str, Drawer] = {"each": draw_each, "rows": draw_outputs}
