"""Builds a report: computes all numbers, then draws and writes the page."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp import __version__
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import show_progress
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
from tfcomp.storage.files import make_folder, write_text
from tfcomp.storage.output_folders import check_folder

# Functions from analyses to a section, by its name in `page.SECTIONS`.
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
# Sections that are about some runs: conditions on an analysis.
SUBJECTS: dict[str, Callable[[RunAnalysis], Any]] = {
    "representations": lambda run: run.run.tables,
    "readings": lambda run: run.run.tables,
    "gaps": lambda run: run.dataset.is_pixels and run.curves,
    "superposition": lambda run: run.dataset.is_pixels and run.has_hole,
    "kernels": lambda run: run.dataset.is_pixels and run.for_pairs.has_hole,
    "tuning": lambda run: len(run.dataset.space) > 1 and run.splits.is_complete,
    "embeddings": lambda run: run.embeddings,
}


@use_own_style()
def build_report(
    analyses: Sequence[RunAnalysis],
    folder: Path,
    sections: Sequence[str],
    between: int = 0,
) -> list[Path]:
    """Writes a report and projector data; returns files, the page first.

    With `between`, errors are also at that number of values of each factor.
    """
    check_folder("output", str(folder))
    names = choose_sections(sections)
    analyses = run_exhibits.rename_runs(analyses)
    runs = [analysis.name for analysis in analyses]
    if not runs or len({*map(verbalize.to_file_name, runs)}) < len(runs):
        rule = "must be at least one, with names of different letters"
        raise ConfigError("models", rule, runs)
    make_folder(folder)
    known = [name for name in names if name in MAKERS]
    about = {n: [*filter(SUBJECTS.get(n), analyses)] for n in known}
    makers = [name for name in known if about[name]]
    progress = show_progress(makers, "report", "section", len(makers))
    made = [MAKERS[name](about[name]) for name in progress]
    made += make_user_sections(analyses, names)
    if between:
        made.append(gap_section.make_between(analyses, between))
    explorer = explorer_fragment(analyses) if "explorer" in names else ""
    if len(analyses) == 1:
        answer = make_answer(analyses, [], "", not explorer)
    else:
        scored = score_table.score_runs(analyses, folder)
        paired = score_table.compare_with_first(scored)
        answer = make_answer(analyses, scored, paired.finding, not explorer)
        made = [paired, *made] if paired.exhibits else made
    if "manifolds" in names:
        for analysis in analyses:
            write_projections(analysis)
    first = {exhibit.name: exhibit for exhibit in answer.exhibits}
    others = {e.name: e for section in made for e in section.exhibits}
    exhibits = [*(first | others).values()]
    drawn = show_progress(exhibits, "drawing", "exhibit", len(exhibits))
    files = [p for exhibit in drawn for p in save_exhibit(exhibit, folder)]
    page = folder / "report.html"
    settings = list(dict.fromkeys(analysis.setting for analysis in analyses))
    subject, count = "; ".join(settings), f"{len(analyses)} runs"
    if len(settings) < len(analyses):
        subject = count if len(settings) == 1 else f"{subject} ({count})"
    for i, s in enumerate(made):
        shown = [e for e in s.exhibits if e.name not in first]
        said = run_exhibits.drop_name(s.finding, runs[0])
        said = s.finding if len(runs) > 1 else said
        made[i] = dataclasses.replace(s, exhibits=shown, finding=said)
    title, subtitle = f"Analysis of {subject}", _describe_data(analyses)
    text = render_page(title, subtitle, answer, made, folder, explorer)
    write_text(page, text)
    return [page, *files]


def _describe_data(analyses: Sequence[RunAnalysis]) -> str:
    if any(analysis.run.path is None for analysis in analyses):
        regions = dict.fromkeys(a.dataset.region.spec for a in analyses)
        text = f"Held out {'; '.join(regions)}."
    else:
        text = verbalize.describe_common(
            [a.run.config.identity() for a in analyses]
        )
    told = [f" {a.name}: {n}." for a in analyses for n in list_notes(a.dataset)]
    return f"{text} Made by tfcomp {__version__}.{''.join(told)}".strip()


def make_answer(
    analyses: Sequence[RunAnalysis],
    scored: Sequence[score_table.ScoredRun],
    compared: str,
    with_map: bool,
) -> Answer:
    """Makes the first screen; without an explorer it has a map of errors."""
    shown = [make_samples(group) for group in run_exhibits.group_runs(analyses)]
    shown += run_section.make_landscapes(analyses) if with_map else []
    tabled = [analysis for analysis in analyses if analysis.run.tables]
    sentences = [*map(part_section.describe_layers, tabled)]
    if len(analyses) > 1:
        sentences += [score_table.describe_fits(scored), compared]
        table = score_table.make_table(scored)
    else:
        (analysis,) = analyses
        sentences += _say_images(analysis) if analysis.dataset.is_pixels else []
        table = _make_scores(analysis)
    return Answer([text for text in sentences if text], [table, *shown])


def _say_images(analysis: RunAnalysis) -> list[str]:
    facts = {  # as in a `metrics.json`
        **analysis.evaluation.scores,
        "points": {
            name: int(rows.sum())
            for name, rows in analysis.dataset.subsets.items()
        },
        "coverage": measure_coverage(analysis.dataset),
        "copies": analysis.dataset.copies.summary,
        "references": analysis.references,
    }
    rows = kernel_section.list_scores(analysis) if analysis.has_hole else []
    gaps = [] if rows else gap_section.list_scored_gaps([analysis])
    curves = [gap_section.summarize_curve(*gap) for gap in gaps]
    said = run_exhibits.describe_superposition(rows)
    said = said or gap_section.describe_gaps(curves)
    return [
        verbalize.describe_scores(facts),
        verbalize.describe_references(facts),
        run_exhibits.drop_name(said, analysis.name),
    ]


def _make_scores(analysis: RunAnalysis) -> Exhibit:
    shown: dict[str, Mapping[str, float | None]] = {
        analysis.name: {
            subset: scores["relative_mse"]
            for subset, scores in analysis.evaluation.scores.items()
        }
    }
    if untrained := analysis.run.metrics.get("untrained"):
        shown["the network before training"] = untrained
    reference = analysis.dataset.reference_name
    shown[reference] = dict.fromkeys(shown[analysis.name], 1.0)
    for name, text in verbalize.list_references(analysis.references).items():
        shown[text.removeprefix("the ")] = analysis.references[name]
    rows = [
        {"predictor": name, "ID": errors.get("id"), "OOD": errors.get("ood")}
        for name, errors in shown.items()
    ]
    vectors = "" if analysis.dataset.is_pixels else run_section.OF_VECTORS
    return make_exhibit("scores", rows=rows, vectors=vectors)


def make_samples(analyses: Sequence[RunAnalysis]) -> Exhibit:
    """Shows eight points, five held out, of the first run of each setting."""
    splits = analyses[0].splits
    first = {analysis.setting: analysis for analysis in reversed(analyses)}
    analyses = [a for a in analyses if a is first[a.setting]]
    held_out = pictures.choose_spread(np.flatnonzero(splits.is_ood), 5)
    count = pictures.SHOWN_SAMPLES - len(held_out)
    known = pictures.choose_spread(np.flatnonzero(splits.is_id), count)
    rows = np.concatenate([known, held_out])
    return run_section.make_output_rows(
        analyses, rows=rows, name="samples", title="Samples"
    )
