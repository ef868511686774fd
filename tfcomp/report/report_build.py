"""Builds a report: computes all numbers, then draws and writes the page."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tfcomp import __version__
from tfcomp.config.errors import ConfigError
from tfcomp.config.process import show_progress
from tfcomp.datasets.notes import list_notes
from tfcomp.datasets.solvable import measure_coverage
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit, save_exhibit, use_own_style
from tfcomp.figures.projector import write_projections
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report import (
    gap_section,
    kernel_section,
    part_section,
    run_exhibits,
    run_section,
    score_table,
    stage_section,
    verbalize,
)
from tfcomp.report.explorer import explorer_fragment
from tfcomp.report.page import (
    Answer,
    Section,
    choose_sections,
    make_exhibit,
    make_user_sections,
    render_page,
)
from tfcomp.storage.files import check_folder, make_folder, write_text

# Functions from analyses to a section, by its name in `page.SECTIONS`. They
# leave out runs that a section does not apply to.
MAKERS: dict[str, Callable[[Sequence[RunAnalysis]], Section]] = {
    "representations": part_section.make_representations,
    "readings": part_section.make_readings,
    "errors": run_section.make_errors,
    "gaps": gap_section.make_gaps,
    "superposition": kernel_section.make_superposition,
    "kernels": kernel_section.make_kernels,
    "layers": stage_section.make_layers,
    "interactions": stage_section.make_interactions,
    "tuning": stage_section.make_tuning,
    "manifolds": stage_section.make_manifolds,
    "umap": part_section.make_umap,
    "embeddings": part_section.make_embeddings,
    "runs": run_section.make_runs,
}
NUM_HELD_OUT = 5  # of the points on the first screen


@use_own_style()
def build_report(
    analyses: Sequence[RunAnalysis],
    folder: Path,
    sections: Sequence[str],
    between: int = 0,
) -> list[Path]:
    """Writes a report and projector data.

    Args:
        analyses: The runs and models to compare.
        folder: The folder of the page, its pictures and tables.
        sections: Names of sections; by default the usual ones.
        between: Errors are also shown at this number of values of each factor,
            unless it is 0.

    Returns:
        All files, the page first.

    Raises:
        ConfigError: If there is no such section, the folder cannot be written,
            or names of runs are missing or not unique.
    """
    check_folder("output", str(folder))
    names = choose_sections(sections)
    analyses = run_exhibits.rename_runs(analyses)
    runs = [analysis.name for analysis in analyses]
    file_names = {verbalize.to_file_name(run) for run in runs}
    if not runs or len(file_names) < len(runs):
        rule = "must be at least one, with names of different letters"
        raise ConfigError("models", rule, runs)
    make_folder(folder)

    made = _make_sections(analyses, names, between)
    explorer = explorer_fragment(analyses) if "explorer" in names else ""
    scored = score_table.score_runs(analyses, folder)
    paired = score_table.compare_with_first(scored)
    if paired.exhibits:
        made.insert(0, paired)
    answer = make_answer(analyses, scored, paired.finding, not explorer)
    if "manifolds" in names:
        for analysis in analyses:
            write_projections(analysis)

    # What the first screen shows is not repeated below.
    exhibits = {exhibit.name: exhibit for exhibit in answer.exhibits}
    for index, section in enumerate(made):
        others = [e for e in section.exhibits if e.name not in exhibits]
        exhibits.update((exhibit.name, exhibit) for exhibit in others)
        finding = section.finding
        if len(runs) == 1:
            finding = run_exhibits.drop_name(finding, runs[0])
        made[index] = dataclasses.replace(
            section, exhibits=others, finding=finding
        )
    files = []
    for exhibit in show_progress(
        list(exhibits.values()), "drawing", "exhibit", len(exhibits)
    ):
        files += save_exhibit(exhibit, folder)

    page = folder / "report.html"
    text = render_page(
        title=f"Analysis of {_describe_settings(analyses)}",
        subtitle=_describe_data(analyses),
        answer=answer,
        sections=made,
        folder=folder,
        explorer=explorer,
    )
    write_text(page, text)
    return [page, *files]


def _make_sections(
    analyses: Sequence[RunAnalysis], names: Sequence[str], between: int
) -> list[Section]:
    built_in = [name for name in names if name in MAKERS]
    sections = [
        MAKERS[name](analyses)
        for name in show_progress(built_in, "report", "section", len(built_in))
    ]
    sections += make_user_sections(analyses, names)
    if between:
        sections.append(gap_section.make_between(analyses, between))
    return sections


def _describe_settings(analyses: Sequence[RunAnalysis]) -> str:
    settings = list(dict.fromkeys(analysis.setting for analysis in analyses))
    text = "; ".join(settings)
    count = f"{len(analyses)} runs"
    if len(settings) == len(analyses):
        return text
    return count if len(settings) == 1 else f"{text} ({count})"


def _describe_data(analyses: Sequence[RunAnalysis]) -> str:
    if any(analysis.run.path is None for analysis in analyses):
        regions = dict.fromkeys(a.dataset.region.spec for a in analyses)
        text = f"Held out {'; '.join(regions)}."
    else:
        flags = [analysis.run.config.identity() for analysis in analyses]
        text = verbalize.describe_common(flags)
    text += f" Made by tfcomp {__version__}."
    for analysis in analyses:
        for note in list_notes(analysis.dataset):
            text += f" {analysis.name}: {note}."
    return text.strip()


def make_answer(
    analyses: Sequence[RunAnalysis],
    scored: Sequence[score_table.ScoredRun],
    compared: str,
    with_map: bool,
) -> Answer:
    """Makes the first screen.

    Args:
        analyses: The runs of the report.
        scored: Their errors, in the same order.
        compared: A sentence on the comparison of settings.
        with_map: Whether to show a map of errors, in place of an explorer.
    """
    sentences = [part_section.describe_layers(a) for a in analyses]
    if len(analyses) > 1:
        table = score_table.make_table(scored)
        sentences += [score_table.describe_fits(scored), compared]
    else:
        (analysis,) = analyses
        table = _make_scores(analysis)
        if analysis.dataset.is_pixels:
            sentences += _describe_images(analysis)

    exhibits = [table]
    for group in run_exhibits.group_runs(analyses):
        exhibits.append(make_samples(group))
    if with_map:
        exhibits += run_section.make_landscapes(analyses)
    return Answer([text for text in sentences if text], exhibits)


def _describe_images(analysis: RunAnalysis) -> list[str]:
    data = analysis.dataset
    points = {name: int(rows.sum()) for name, rows in data.subsets.items()}
    metrics = {  # as in a `metrics.json`
        **analysis.evaluation.scores,
        "points": points,
        "coverage": measure_coverage(data),
        "copies": data.copies.summary,
        "references": analysis.references,
    }
    if analysis.has_hole:
        rows = kernel_section.list_scores(analysis)
        finding = kernel_section.describe_superposition(rows)
    else:
        gaps = gap_section.list_scored_gaps([analysis])
        rows = [gap_section.summarize_curve(*gap) for gap in gaps]
        finding = gap_section.describe_gaps(rows)
    return [
        verbalize.describe_scores(metrics),
        verbalize.describe_references(metrics),
        run_exhibits.drop_name(finding, analysis.name),
    ]


def _make_scores(analysis: RunAnalysis) -> Exhibit:
    """Makes the table of one run: its errors beside other predictors'."""
    data = analysis.dataset
    scores = analysis.evaluation.scores
    errors = {
        analysis.name: {s: scores[s]["relative_mse"] for s in scores},
        "the network before training": analysis.run.metrics.get("untrained"),
        data.reference_name: dict.fromkeys(scores, 1.0),
    }
    for name, text in verbalize.list_references(analysis.references).items():
        errors[text.removeprefix("the ")] = analysis.references[name]
    rows = [
        {"predictor": name, "ID": numbers.get("id"), "OOD": numbers.get("ood")}
        for name, numbers in errors.items()
        if numbers
    ]
    vectors = "" if data.is_pixels else run_section.OF_VECTORS
    return make_exhibit("scores", rows=rows, vectors=vectors)


def make_samples(analyses: Sequence[RunAnalysis]) -> Exhibit:
    """Shows eight points, five held out, of the first run of each setting."""
    by_setting: dict[str, RunAnalysis] = {}
    for analysis in analyses:
        by_setting.setdefault(analysis.setting, analysis)
    splits = analyses[0].splits
    held_out = np.flatnonzero(splits.is_ood)
    held_out = pictures.choose_spread(held_out, NUM_HELD_OUT)
    num_known = pictures.SHOWN_SAMPLES - len(held_out)
    known = pictures.choose_spread(np.flatnonzero(splits.is_id), num_known)
    return run_section.make_output_rows(
        list(by_setting.values()),
        rows=np.concatenate([known, held_out]),
        name="samples",
        title="Samples",
    )
