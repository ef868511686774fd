"""Builds a report: computes all numbers, then draws and writes the page."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp import __version__
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import show_progress
from tfcomp.datasets.notes import describe_sample
from tfcomp.evaluation.pictures import title_points
from tfcomp.evaluation.projector import MAX_COMPONENTS, write_projector
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import save_exhibit
from tfcomp.report import (
    error_section,
    gap_section,
    manifold_section,
    stage_section,
    table_sections,
)
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.first_screen import make_answer, score_runs
from tfcomp.report.page import (
    Section,
    choose_sections,
    make_user_sections,
    render_page,
)
from tfcomp.report.run_exhibits import name_values, rename_runs
from tfcomp.report.run_names import describe_common
from tfcomp.report.score_table import compare_with_first
from tfcomp.storage.files import make_folder, write_text
from tfcomp.storage.output_folders import check_folder

# Functions from analyses to a section, by its name in `sections.SECTIONS`. A
# section that does not apply to the runs has no exhibits.
MAKERS: dict[str, Callable[[Sequence[RunAnalysis]], Section]] = {
    "representations": table_sections.make_representations,
    "readings": table_sections.make_readings,
    "errors": error_section.make_errors,
    "gaps": gap_section.make_gaps,
    "superposition": error_section.make_superposition,
    "kernels": manifold_section.make_kernels,
    "layers": stage_section.make_layers,
    "interactions": stage_section.make_interactions,
    "tuning": stage_section.make_tuning,
    "manifolds": manifold_section.make_manifolds,
    "umap": manifold_section.make_umap,
    "embeddings": manifold_section.make_embeddings,
    "runs": table_sections.make_runs,
}
# Sections of outputs that are images.
OF_IMAGES = ("gaps", "superposition", "kernels")


def build_report(
    analyses: Sequence[RunAnalysis],
    folder: Path,
    sections: Sequence[str],
    between: int = 0,
) -> list[Path]:
    """Writes a report and projector data; returns files, the page first.

    With `between`, errors are also on a grid of so many values a factor.
    """
    check_folder("output", str(folder))
    names = choose_sections(sections)
    runs = [analysis.name for analysis in analyses]
    if not runs or len(set(runs)) < len(runs):
        rule = "must be at least one, and their names must differ"
        raise ConfigError("models", rule, runs)
    analyses = rename_runs(analyses)
    make_folder(folder)
    made = _make_sections(analyses, names)
    if between:
        made.append(error_section.make_between(analyses, between))
    explorer = explorer_fragment(analyses) if "explorer" in names else ""
    scored = score_runs(analyses, folder)
    paired = compare_with_first(scored)
    answer = make_answer(analyses, scored, paired.finding, not explorer)
    if paired.exhibits:
        made.insert(0, paired)
    if "manifolds" in names:
        for analysis in analyses:
            write_projections(analysis)
    first = {exhibit.name: exhibit for exhibit in answer.exhibits}
    others = {e.name: e for section in made for e in section.exhibits}
    exhibits = first | others
    progress = show_progress(
        exhibits.values(), "drawing", "exhibit", len(exhibits)
    )
    files = [p for exhibit in progress for p in save_exhibit(exhibit, folder)]
    page = folder / "report.html"
    title = f"Analysis of {_name_settings(analyses)}"
    made = [
        dataclasses.replace(
            s, exhibits=[e for e in s.exhibits if e.name not in first]
        )
        for s in made
    ]
    subtitle = _describe_data(analyses)
    text = render_page(title, subtitle, answer, made, folder, explorer)
    write_text(page, text)
    return [page, *files]


def _make_sections(
    analyses: Sequence[RunAnalysis], names: Sequence[str]
) -> list[Section]:
    images = [a for a in analyses if a.dataset.is_pixels]
    makers = [
        n for n in names if n in MAKERS and (images or n not in OF_IMAGES)
    ]
    made = [
        MAKERS[name](images if name in OF_IMAGES else analyses)
        for name in show_progress(makers, "report", "section", len(makers))
    ]
    return made + make_user_sections(analyses, names)


def _name_settings(analyses: Sequence[RunAnalysis]) -> str:
    settings = list(dict.fromkeys(analysis.setting for analysis in analyses))
    count = f"{len(analyses)} runs"
    if len(settings) == len(analyses):
        return "; ".join(settings)
    return count if len(settings) == 1 else f"{'; '.join(settings)} ({count})"


def _describe_data(analyses: Sequence[RunAnalysis]) -> str:
    if any(analysis.run.path is None for analysis in analyses):
        regions = dict.fromkeys(a.dataset.region.spec for a in analyses)
        text = f"Held out {'; '.join(regions)}."
    else:
        text = describe_common([a.run.config.identity() for a in analyses])
    notes = [
        f" {analysis.name}: {note}."
        for analysis in analyses
        if (note := describe_sample(analysis.dataset))
    ]
    return f"{text} Made by tfcomp {__version__}.{''.join(notes)}".strip()


def write_projections(analysis: RunAnalysis) -> None:
    """Writes the stages of a run for TensorBoard's projector."""
    folder, analysis = analysis.run.path, analysis.for_pairs
    if folder is None:
        return
    splits, pixels = analysis.splits, analysis.evaluation.images
    upright = analysis.dataset.first_row == "bottom"
    # TensorBoard sorts by name and opens on the first. The last inner stage
    # with any variance shows most; the code looks the same in every run.
    components = analysis.components
    inner = [s for s in [*components][1:-1] if components[s].explained.any()]
    order = dict.fromkeys([*inner[-1:], *components])
    shown = {
        f"{place:02d} {stage}": components[stage].features[:, :MAX_COMPONENTS]
        for place, stage in enumerate(order, 1)
    }
    # TensorBoard labels points by the first column of words.
    labels: dict[str, Any] = {
        "point": title_points(analysis.dataset, np.arange(len(splits.grid))),
        **name_values(analysis.dataset.space, splits.grid),
        "split": np.where(splits.is_ood, "OOD", "ID"),
    }
    images = pixels if upright else pixels[:, ::-1]
    write_projector(folder, shown, labels, images, splits.grid[:, 0])
