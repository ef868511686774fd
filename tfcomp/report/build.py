"""The whole report: runs in, files out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfcomp import __version__
from tfcomp.exhibits import save_exhibit
from tfcomp.files import write_text
from tfcomp.loading import LoadedRun
from tfcomp.projector import write_projector
from tfcomp.report.curves import make_curves
from tfcomp.report.embeddings import make_embeddings
from tfcomp.report.kernels import make_kernels
from tfcomp.report.layers import make_layers
from tfcomp.report.manifolds import make_manifolds
from tfcomp.report.overview import make_overview
from tfcomp.report.page import render_page
from tfcomp.report.superposition import make_superposition
from tfcomp.report.tuning import make_tuning
from tfcomp.run_folder import FLAGS_FILE
from tfcomp.study import Study

SECTIONS = (
    make_overview,
    make_curves,
    make_superposition,
    make_kernels,
    make_layers,
    make_tuning,
    make_manifolds,
    make_embeddings,
)


def build_report(runs: Sequence[LoadedRun], folder: Path) -> Path:
    """Writes every exhibit and the page that shows them.

    Also adds projector data to the run folders, for TensorBoard.

    Args:
        runs: Finished runs with different names.
        folder: Where to write.

    Returns:
        The path of the page.
    """
    studies = [Study(run) for run in runs]
    sections = []
    for make_section in SECTIONS:
        section = make_section(studies)
        for exhibit in section.exhibits:
            save_exhibit(exhibit, folder)
        sections.append(section)
    page = render_page(
        "Analysis of " + ", ".join(study.name for study in studies),
        f"Made by tfcomp {__version__} from finished runs.",
        sections,
        {run.name: (run.path / FLAGS_FILE).read_text() for run in runs},
    )
    for study in studies:
        write_projections(study)
    path = folder / "report.html"
    write_text(path, page)
    return path


def write_projections(study: Study) -> None:
    """Puts the stages of a run into TensorBoard's projector."""
    space, splits = study.dataset.space, study.splits
    images = study.evaluation.images
    rows, columns, _ = study.dataset.image_shape
    pixels = images.reshape(-1, rows, columns)
    upright = study.dataset.first_row == "bottom"
    write_projector(
        study.run.path,
        {stage: study.numbers[stage].features for stage in study.stages},
        {
            "split": np.where(splits.is_ood, "OOD", "ID"),
            **{
                name: splits.grid[:, column]
                for column, name in enumerate(space.names)
            },
        },
        np.clip(pixels if upright else pixels[:, ::-1], 0.0, 1.0),
    )
