"""The first screen of a report: sentences, scores and samples."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tfcomp.datasets.solvable import measure_coverage
from tfcomp.evaluation import pictures, verbalize
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report import score_table
from tfcomp.report.error_section import list_scores, make_landscapes
from tfcomp.report.findings import describe_gaps, describe_superposition
from tfcomp.report.gap_section import list_scored_gaps, summarize_curve
from tfcomp.report.page import Answer, make_exhibit
from tfcomp.report.run_exhibits import group_runs
from tfcomp.report.run_names import to_file_name
from tfcomp.report.table_sections import describe_layers
from tfcomp.statistics.seed_statistics import choose_flags

_OF_VECTORS = (
    "Images are embeddings, shown by the nearest item's picture, else in "
    "shades of gray; outputs are sums of parts that are fitted to ID."
)


def make_answer(
    analyses: Sequence[RunAnalysis],
    scored: Sequence[score_table.ScoredRun],
    compared: str,
    with_map: bool,
) -> Answer:
    """Makes the first screen; without an explorer it has a map of errors."""
    shown = [make_samples(group) for group in group_runs(analyses)]
    if with_map:
        mapped = [analysis for analysis in analyses if analysis.has_map]
        shown += [make_landscapes(group) for group in group_runs(mapped)]
    sentences = [*map(describe_layers, analyses)]
    if len(analyses) > 1:
        sentences += [score_table.describe_fits(scored), compared]
        table = score_table.make_table(scored)
    else:
        (analysis,) = analyses
        sentences += _say_images(analysis) if analysis.dataset.is_pixels else []
        table = _make_scores(analysis)
    return Answer([text for text in sentences if text], [table, *shown])


def score_runs(
    analyses: Sequence[RunAnalysis], folder: Path
) -> list[score_table.ScoredRun]:
    """Returns the errors of runs, with links from the folder of a report."""
    scored = []
    for analysis in analyses:
        run, link = analysis.run, ""
        if run.path is not None:
            page = run.path / "analysis" / "report.html"
            target = page if page.exists() else run.path
            link = Path(os.path.relpath(target, folder)).as_posix()
        metrics = analysis.evaluation.scores | {
            "references": analysis.references,
            "untrained": run.metrics.get("untrained", {}),
        }
        seed = run.config.training.seed
        scored.append(
            score_table.read_scored(analysis.setting, seed, metrics, link)
        )
    return scored


def _say_images(analysis: RunAnalysis) -> list[str]:
    facts = {  # as in a `metrics.json`
        **analysis.evaluation.scores,
        "points": {
            name: int(rows.sum())
            for name, rows in analysis.dataset.subsets.items()
        },
        "coverage": measure_coverage(analysis.dataset),
        "references": analysis.references,
    }
    rows = list_scores(analysis) if analysis.has_hole else []
    gaps = [] if rows else list_scored_gaps([analysis])
    return [
        verbalize.describe_scores(facts),
        verbalize.describe_references(facts),
        describe_superposition(rows)
        or describe_gaps([summarize_curve(*gap) for gap in gaps]),
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
    vectors = "" if analysis.dataset.is_pixels else _OF_VECTORS
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
    return make_output_rows(
        analyses, rows=rows, name="samples", title="Samples"
    )


def make_output_rows(
    analyses: Sequence[RunAnalysis],
    labels: Sequence[str] = (),
    *,
    rows: np.ndarray | None = None,
    name: str = "held_out_rows",
    title: str = "Held-out positions",
) -> Exhibit:
    """Shows the truth, then a row for each run, with scores of each truth."""
    first = analyses[0]
    splits, data = first.splits, first.dataset
    if rows is None:
        rows = pictures.choose_spread(np.flatnonzero(splits.is_ood))
    settings = [analysis.run.config.identity() for analysis in analyses]
    flags = choose_flags(settings)
    labels = labels or [analysis.name for analysis in analyses]
    images = {"truth": data.to_pictures(first.evaluation.truth[rows])}
    for label, analysis in zip(labels, analyses, strict=True):
        images[label] = data.to_pictures(analysis.evaluation.images[rows])
    figure = draw_rows(
        images,
        splits.grid[rows] if data.has_position else None,
        pictures.get_pixel_mask(data),
        first_row=data.first_row,
        column_titles=pictures.title_points(data, rows),
    )
    table = [
        {
            "run": analysis.name,
            **{flag: setting[flag] for flag in flags},
            "subset": subset,
            **scores,
        }
        for analysis, setting in zip(analyses, settings, strict=True)
        for subset, scores in analysis.evaluation.scores.items()
    ]
    return make_exhibit(
        "samples",
        figure,
        table,
        name=f"{name}_{to_file_name(first.name)}",
        heading=title,
        region=data.region.spec,
        vectors="" if data.is_pixels else _OF_VECTORS,
    )
