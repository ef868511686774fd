"""Builds a report: computes all numbers, then draws and writes the page."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps

from tfcomp import __version__
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import show_progress
from tfcomp.datasets.notes import describe_sample
from tfcomp.evaluation.projector import MAX_COMPONENTS, write_projector
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import save_exhibit
from tfcomp.report.error_section import make_errors
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.first_screen import make_answer, score_runs
from tfcomp.report.gap_section import make_gaps
from tfcomp.report.interaction_section import make_interactions, make_tuning
from tfcomp.report.kernel_section import make_kernels
from tfcomp.report.layer_section import make_layers
from tfcomp.report.manifold_section import (
    make_embeddings,
    make_manifolds,
    make_umap,
)
from tfcomp.report.page import Answer, Section, render_page
from tfcomp.report.run_exhibits import name_values, rename_runs
from tfcomp.report.run_names import describe_common
from tfcomp.report.run_section import make_runs
from tfcomp.report.score_table import compare_section
from tfcomp.report.sections import choose_sections, make_user_sections
from tfcomp.report.superposition_section import make_superposition
from tfcomp.report.table_sections import make_readings, make_representations
from tfcomp.storage.files import make_folder, write_text
from tfcomp.storage.output_folders import check_folder

# Functions from analyses to a section, by its name in `sections.SECTIONS`. A
# section that does not apply to the runs has no exhibits.
MAKERS: dict[str, Callable[[Sequence[RunAnalysis]], Section]] = {
    "representations": make_representations,
    "readings": make_readings,
    "errors": make_errors,
    "gaps": make_gaps,
    "superposition": make_superposition,
    "kernels": make_kernels,
    "layers": make_layers,
    "interactions": make_interactions,
    "tuning": make_tuning,
    "manifolds": make_manifolds,
    "umap": make_umap,
    "embeddings": make_embeddings,
    "runs": make_runs,
}
# Sections of outputs that are images.
OF_IMAGES = ("gaps", "superposition", "kernels")


def build_report(
    analyses: Sequence[RunAnalysis], folder: Path, sections: Sequence[str]
) -> list[Path]:
    """Writes the named sections, a page, and the projector data of runs.

    Returns:
        All files that were written into the folder, the page first.

    Raises:
        ConfigError: If the folder cannot be written, names of runs are not
            unique, or there is no such section.
    """
    check_folder("output", str(folder))
    names = choose_sections(sections)
    runs = [analysis.name for analysis in analyses]
    if len(set(runs)) < len(runs):
        raise ConfigError("name", "must differ between the models", runs)
    analyses = rename_runs(analyses)
    make_folder(folder)
    images = [a for a in analyses if a.dataset.is_pixels]
    makers = [
        n for n in names if n in MAKERS and (images or n not in OF_IMAGES)
    ]
    progress = show_progress(makers, "report", "section", len(makers))
    made = [
        MAKERS[name](images if name in OF_IMAGES else analyses)
        for name in progress
    ]
    made += make_user_sections(analyses, names)
    explorer = explorer_fragment(analyses) if "explorer" in names else ""
    scored = score_runs(analyses, folder)
    answer = make_answer(analyses, scored, with_map=not explorer)
    if len(analyses) > 1 and (compared := compare_section(scored)):
        made.insert(0, compared)
    if "manifolds" in names:
        for analysis in analyses:
            write_projections(analysis)
    files = list(_save_exhibits([answer, *made], folder))
    page = folder / "report.html"
    write_text(page, _render(analyses, answer, made, folder, explorer))
    return [page, *files]


def _save_exhibits(
    parts: Sequence[Answer | Section], folder: Path
) -> Iterator[Path]:
    """Writes pictures and tables, each name once; yields their paths."""
    exhibits = {e.name: e for part in parts for e in part.exhibits}
    shown = show_progress(
        exhibits.values(), "drawing", "exhibit", len(exhibits)
    )
    for exhibit in shown:
        yield from save_exhibit(exhibit, folder)


def _render(
    analyses: Sequence[RunAnalysis],
    answer: Answer,
    sections: Sequence[Section],
    folder: Path,
    explorer: str,
) -> str:
    # The first screen shows some exhibits of the sections.
    shown = {exhibit.name for exhibit in answer.exhibits}
    sections = [
        dataclasses.replace(
            section,
            exhibits=[e for e in section.exhibits if e.name not in shown],
        )
        for section in sections
    ]
    notes = [
        f" {analysis.name}: {note}."
        for analysis in analyses
        if (note := describe_sample(analysis.dataset))
    ]
    return render_page(
        f"Analysis of {_name_settings(analyses)}",
        f"{_describe_data(analyses)} Made by tfcomp {__version__}."
        f"{''.join(notes)}".strip(),
        answer,
        sections,
        folder,
        explorer,
    )


def _name_settings(analyses: Sequence[RunAnalysis]) -> str:
    """Names the settings of a report, and how many runs they have."""
    settings = list(dict.fromkeys(analysis.setting for analysis in analyses))
    count = f"{len(analyses)} runs"
    if len(settings) == len(analyses):
        return "; ".join(settings)
    return count if len(settings) == 1 else f"{'; '.join(settings)} ({count})"


def _describe_data(analyses: Sequence[RunAnalysis]) -> str:
    """Describes what all runs share: data, held-out region, and model."""
    if any(analysis.run.path is None for analysis in analyses):
        regions = dict.fromkeys(a.dataset.region.spec for a in analyses)
        return f"Held out {'; '.join(regions)}."
    configs = [analysis.run.config.identity() for analysis in analyses]
    return describe_common(configs)


def write_projections(analysis: RunAnalysis) -> None:
    """Writes the stages of a run for TensorBoard's projector."""
    folder, analysis = analysis.run.path, analysis.for_pairs
    if folder is None:
        return
    splits, pixels = analysis.splits, analysis.evaluation.images
    upright = analysis.dataset.first_row == "bottom"
    # TensorBoard sorts by name and opens on the first. The last inner stage
    # with any variance shows most; the code looks the same in every run.
    found = analysis.components
    inner = [s for s in [*found][1:-1] if found[s].explained.any()]
    order = dict.fromkeys([*inner[-1:], *found])
    write_projector(
        folder,
        {
            f"{place:02d} {stage}": found[stage].features[:, :MAX_COMPONENTS]
            for place, stage in enumerate(order, 1)
        },
        {
            "split": np.where(splits.is_ood, "OOD", "ID"),
            **name_values(analysis.dataset.space, splits.grid),
        },
        _tint(analysis, pixels if upright else pixels[:, ::-1]),
    )


def _tint(analysis: RunAnalysis, pixels: np.ndarray) -> np.ndarray:
    """Colors gray images by the value of their first factor."""
    values = analysis.splits.grid[:, 0]
    low, high = np.nanmin(values), np.nanmax(values)
    shares = (values - low) / max(high - low, 1e-9)
    shown = pixels.clip(0.0, 1.0)
    if shown.shape[-1] != 1:
        return shown
    colors = colormaps["plasma"](np.nan_to_num(shares))[:, :3]  # [n, 3]
    return shown * (0.3 + 0.7 * colors)[:, None, None]
