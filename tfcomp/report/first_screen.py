"""The first screen of a report: sentences, scores and samples."""

from collections.abc import Mapping, Sequence

import numpy as np

from tfcomp.datasets.solvable import measure_coverage
from tfcomp.evaluation import pictures, verbalize
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report.error_section import make_landscapes
from tfcomp.report.findings import describe_gaps, describe_superposition
from tfcomp.report.gap_section import list_scored_gaps, summarize_curve
from tfcomp.report.page import Answer
from tfcomp.report.run_exhibits import group_runs
from tfcomp.report.superposition_section import list_scores
from tfcomp.report.table_sections import describe_layers
from tfcomp.statistics.setting_table import choose_flags, make_label

_OF_VECTORS = (
    "Images are embeddings, shown by the nearest item's picture, else in "
    "shades of gray; outputs are sums of parts that are fitted to ID."
)


def make_answer(analyses: Sequence[RunAnalysis], with_map: bool) -> Answer:
    """Makes the first screen; without an explorer it has a map of errors."""
    shown = [make_samples(group) for group in group_runs(analyses)]
    if with_map:
        mapped = [analysis for analysis in analyses if analysis.has_map]
        shown += [make_landscapes(group) for group in group_runs(mapped)]
    return Answer(say_answer(analyses), [_make_scores(analyses), *shown])


def say_answer(analyses: Sequence[RunAnalysis]) -> list[str]:
    """Returns sentences on errors, references, and held-out outputs."""
    layers = [describe_layers(a) for a in analyses if "layers" in a.run.tables]
    analyses = [a for a in analyses if a.dataset.is_pixels]
    return [*layers, *(_say_images(analyses) if analyses else [])]


def _say_images(analyses: Sequence[RunAnalysis]) -> list[str]:
    facts = {
        analysis.name: {  # as in a `metrics.json`
            **analysis.evaluation.scores,
            "points": {
                name: int(rows.sum())
                for name, rows in analysis.dataset.subsets.items()
            },
            "coverage": measure_coverage(analysis.dataset),
            "references": analysis.references,
        }
        for analysis in analyses
    }
    holes = [analysis for analysis in analyses if analysis.has_hole]
    rows = [row for analysis in holes for row in list_scores(analysis)]
    gaps = [] if rows else list_scored_gaps(analyses)
    found = [
        verbalize.describe_runs(facts),
        verbalize.describe_references(facts),
        describe_superposition(rows)
        or describe_gaps([summarize_curve(*gap) for gap in gaps]),
    ]
    return [sentence for sentence in found if sentence]


def _make_scores(analyses: Sequence[RunAnalysis]) -> Exhibit:
    rows = []
    for group in group_runs(analyses):
        drawn: dict[str, Mapping[str, float | None]] = {
            analysis.name: {
                subset: scores["relative_mse"]
                for subset, scores in analysis.evaluation.scores.items()
            }
            for analysis in group
        }
        first = group[0]
        reference = first.dataset.reference_name
        drawn[reference] = dict.fromkeys(drawn[first.name], 1.0)
        for name, text in verbalize.REFERENCES.items():
            if found := first.references.get(name):
                drawn[text.removeprefix("the ")] = found
        rows += [
            {"drawn by": name, "ID": errors.get("id"), "OOD": errors.get("ood")}
            for name, errors in drawn.items()
        ]
    columns = [n for n in rows[0] if any(row[n] is not None for row in rows)]
    vectors = "" if analyses[0].dataset.is_pixels else f"{_OF_VECTORS} "
    return Exhibit(
        "scores",
        "Relative errors",
        f"{vectors}The pixel MSE divided by that of a reference: a blank "
        "image if the data declare a constant ground, else the mean training "
        "image. ID: combinations of factors outside the held-out region; OOD: "
        "combinations inside.",
        rows=[{name: row[name] for name in columns} for row in rows],
    )


def make_samples(analyses: Sequence[RunAnalysis]) -> Exhibit:
    """Shows true images and outputs at eight points, five of them held out."""
    splits = analyses[0].splits
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
    """Shows the truth in the first row, then a row for each run.

    The labels are names of the runs by default, or the flag that differs. The
    points are rows of the grid, by default held-out ones. The table has the
    scores of every run against each truth: of stripes and bumps, the bump
    (`ood`) and the plus of two stripes.
    """
    first = analyses[0]
    splits, data = first.splits, first.dataset
    if rows is None:
        rows = pictures.choose_spread(np.flatnonzero(splits.is_ood))
    settings = [analysis.run.config.identity() for analysis in analyses]
    flags = choose_flags(settings)
    if not labels and len(flags) == 1:  # a series: values say more than names
        labels = [f"{flags[0]} {make_label(s, flags)}" for s in settings]
    labels = labels or [analysis.name for analysis in analyses]
    images = {"truth": data.to_pictures(first.evaluation.truth[rows])}
    for label, analysis in zip(labels, analyses, strict=True):
        images[label] = data.to_pictures(analysis.evaluation.images[rows])
    points = pictures.describe_points(data, rows)
    if points is None:
        points = [f"({x:.3g}, {y:.3g})" for x, y in splits.grid[rows]]
    marks = ["OOD" if held_out else "ID" for held_out in splits.is_ood[rows]]
    figure = draw_rows(
        images,
        splits.grid[rows] if data.has_position else None,
        pictures.get_pixel_mask(data),
        first_row=data.first_row,
        column_titles=[f"{m} {p}" for m, p in zip(marks, points, strict=True)],
    )
    return Exhibit(
        f"{name}_{first.name}",
        f"{title}: region {data.region.spec}",
        f"{'' if data.is_pixels else f'{_OF_VECTORS} '}"
        "True images (first row) and outputs. Column titles have the split "
        "(OOD is held out) and the factor values. Pixels are shown from 0 to "
        "1. The table has the scores over all combinations.",
        figure,
        [
            {
                "run": analysis.name,
                **{flag: setting[flag] for flag in flags},
                "subset": subset,
                **scores,
            }
            for analysis, setting in zip(analyses, settings, strict=True)
            for subset, scores in analysis.evaluation.scores.items()
        ],
    )
