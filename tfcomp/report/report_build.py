"""The whole report: runs in, files out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfcomp import __version__
from tfcomp.config.quiet import show_progress
from tfcomp.evaluation.projector import MAX_COMPONENTS, write_projector
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import save_exhibit
from tfcomp.report.curve_section import make_curves
from tfcomp.report.embedding_section import make_embeddings
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.interaction_section import make_interactions
from tfcomp.report.kernel_section import make_kernels
from tfcomp.report.layer_section import make_layers
from tfcomp.report.manifold_section import make_manifolds
from tfcomp.report.overview_section import make_overview
from tfcomp.report.own_sections import make_own_sections
from tfcomp.report.page import Section, render_page
from tfcomp.report.row_section import make_row_comparison
from tfcomp.report.run_exhibits import name_values
from tfcomp.report.superposition_section import make_superposition
from tfcomp.report.tuning_section import make_tuning
from tfcomp.storage.files import write_text

SECTIONS = (
    make_overview,
    make_row_comparison,
    make_curves,
    make_superposition,
    make_kernels,
    make_layers,
    make_interactions,
    make_tuning,
    make_manifolds,
    make_embeddings,
)


def build_report(studies: Sequence[Study], folder: Path) -> Path:
    """Writes every exhibit of studies with different names, and their page.

    Also adds projector data to the run folders, for TensorBoard. Returns the
    path of the page.
    """
    sections = []
    for make_section in show_progress(
        SECTIONS, "report", "section", len(SECTIONS)
    ):
        sections.append(make_section(studies))
        save_exhibits(sections[-1:], folder)
    own = make_own_sections(studies)
    save_exhibits(own, folder)
    page = render_page(
        "Analysis of " + ", ".join(study.name for study in studies),
        f"Made by tfcomp {__version__} from finished runs."
        + "".join(
            f" {study.name}: {study.dataset.sample_note}."
            for study in studies
            if study.dataset.sample_note
        ),
        [*sections, *own],
        {study.name: study.run.description for study in studies},
        folder,
        explorer_fragment(studies),
    )
    for study in studies:
        if study.run.path is not None:
            write_projections(study)
    path = folder / "report.html"
    write_text(path, page)
    return path


def save_exhibits(sections: Sequence[Section], folder: Path) -> None:
    """Writes the pictures and tables of sections."""
    for section in sections:
        for exhibit in section.exhibits:
            save_exhibit(exhibit, folder)


def write_projections(study: Study) -> None:
    """Puts the stages of a run into TensorBoard's projector."""
    splits = study.splits
    pixels = study.evaluation.images
    upright = study.dataset.first_row == "bottom"
    # TensorBoard opens on the first, and the code shows what everybody knows.
    first = list(study.numbers)[-2:]
    write_projector(
        study.run.path,
        {
            stage: study.numbers[stage].components.features[:, :MAX_COMPONENTS]
            for stage in dict.fromkeys([*first, *study.numbers])
        },
        {
            "split": np.where(splits.is_ood, "OOD", "ID"),
            **name_values(study.dataset.space, splits.grid),
        },
        np.clip(pixels if upright else pixels[:, ::-1], 0.0, 1.0),
    )
