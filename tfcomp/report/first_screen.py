"""The first screen of a report: what the numbers say, scores, samples."""

from collections.abc import Sequence

import numpy as np

from tfcomp.datasets.solvable import measure_coverage
from tfcomp.evaluation.in_words import (
    REFERENCES,
    describe_references,
    describe_runs,
)
from tfcomp.evaluation.pictures import (
    SHOWN_SAMPLES,
    choose_spread,
    describe_points,
    get_pixel_mask,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report.error_section import make_landscapes
from tfcomp.report.findings import describe_gaps, describe_superposition
from tfcomp.report.gap_section import list_scored_gaps, summarize_curve
from tfcomp.report.page import Answer
from tfcomp.report.run_exhibits import Row, group_runs
from tfcomp.report.superposition_section import list_scores
from tfcomp.statistics.setting_table import choose_flags, make_label

# Of the samples; the others are of what was not held out.
SHOWN_OOD = 5


def make_answer(studies: Sequence[Study], with_map: bool) -> Answer:
    """What the runs reach, in words, numbers and pictures.

    With the map of errors where no explorer has it.
    """
    shown = [make_samples(group) for group in group_runs(studies)]
    if with_map:
        mapped = [study for study in studies if study.has_map]
        shown += [make_landscapes(group) for group in group_runs(mapped)]
    return Answer(say_answer(studies), [make_scores(studies), *shown])


def say_answer(studies: Sequence[Study]) -> list[str]:
    """Three sentences: the errors, those without a network, and what the
    held-out outputs are made of; fewer where one does not apply."""
    facts = {study.name: list_facts(study) for study in studies}
    found = [describe_runs(facts), describe_references(facts)]
    holes = [study for study in studies if study.has_hole]
    rows = [row for study in holes for row in list_scores(study)]
    gaps = [] if rows else list_scored_gaps(studies)
    found.append(
        describe_superposition(rows)
        or describe_gaps([summarize_curve(*gap) for gap in gaps])
    )
    return [sentence for sentence in found if sentence]


def list_facts(study: Study) -> dict[str, dict]:
    """What the sentences are made of, as in a `metrics.json`."""
    scored = study.splits.scored
    return {
        **study.evaluation.scores,
        "points": {
            name: int(rows.sum()) for name, rows in scored.subsets.items()
        },
        "coverage": measure_coverage(study.dataset),
        "references": study.references,
    }


def make_scores(studies: Sequence[Study]) -> Exhibit:
    """The errors of every run beside those that need no network."""
    rows = [row for group in group_runs(studies) for row in list_errors(group)]
    columns = [n for n in rows[0] if any(row[n] is not None for row in rows)]
    return Exhibit(
        "scores",
        "Relative errors",
        "The pixel MSE divided by that of a blank image (of the mean training "
        "image, where data have no background). ID: combinations of factors "
        "outside the held-out region; OOD: those inside.",
        rows=[{name: row[name] for name in columns} for row in rows],
    )


def list_errors(group: Sequence[Study]) -> list[Row]:
    """Errors of runs on the same data, and of the predictors on these."""
    first = group[0]
    drawn = {
        study.name: {
            subset: scores["relative_mse"]
            for subset, scores in study.evaluation.scores.items()
        }
        for study in group
    }
    drawn[first.dataset.reference_name] = dict.fromkeys(drawn[first.name], 1.0)
    for name, text in REFERENCES.items():
        if found := first.references.get(name):
            drawn[text.removeprefix("the ")] = found
    return [
        {"drawn by": name, "ID": errors.get("id"), "OOD": errors.get("ood")}
        for name, errors in drawn.items()
    ]


def make_samples(studies: Sequence[Study]) -> Exhibit:
    """One row of truths, and below it one for each run on the same data."""
    splits = studies[0].splits
    held_out = choose_spread(np.flatnonzero(splits.is_ood), SHOWN_OOD)
    known = np.flatnonzero(splits.is_id)
    known = choose_spread(known, SHOWN_SAMPLES - len(held_out))
    rows = np.concatenate([known, held_out])
    return make_output_rows(studies, rows=rows, name="samples", title="Samples")


def make_output_rows(
    studies: Sequence[Study],
    labels: Sequence[str] = (),
    *,
    rows: np.ndarray | None = None,
    name: str = "held_out_rows",
    title: str = "Held-out positions",
) -> Exhibit:
    """The truth in the first row, then a row for each of comparable runs.

    The labels are theirs, by default names or what tells the runs apart. The
    points are rows of the grid, by default some that were held out. The table
    has the scores of every run against each truth that it is compared with.
    For stripes and bumps these are the bump (`ood`) and the plus that two
    stripes make (`ood_plus`).
    """
    first = studies[0]
    splits = first.splits
    if rows is None:
        rows = choose_spread(np.flatnonzero(splits.is_ood))
    settings = [study.run.config.identity() for study in studies]
    flags = choose_flags(settings)
    names = [study.name for study in studies]
    if len(flags) == 1:  # a series, of which the values say more than names
        names = [f"{flags[0]} {make_label(s, flags)}" for s in settings]
    outputs = [study.evaluation.images[rows] for study in studies]
    truth = first.evaluation.truth[rows]
    points = describe_points(first.dataset, rows)
    if points is None:
        points = [f"({x:.3g}, {y:.3g})" for x, y in splits.grid[rows]]
    marks = ["OOD" if held_out else "ID" for held_out in splits.is_ood[rows]]
    figure = draw_rows(
        {"truth": truth, **dict(zip(labels or names, outputs, strict=True))},
        splits.grid[rows] if first.dataset.has_position else None,
        get_pixel_mask(first.dataset),
        first_row=first.dataset.first_row,
        column_titles=[f"{m} {p}" for m, p in zip(marks, points, strict=True)],
    )
    return Exhibit(
        f"{name}_{first.name}",
        f"{title}: region {first.dataset.region.spec}",
        "True images (first row), and what is drawn instead. Column titles "
        "say which were held out (OOD), and the factor values. Pixels are "
        "shown from 0 to 1. The table has the scores over all combinations.",
        figure,
        [
            {
                "run": study.name,
                **{flag: setting[flag] for flag in flags},
                "subset": subset,
                **scores,
            }
            for study, setting in zip(studies, settings, strict=True)
            for subset, scores in study.evaluation.scores.items()
        ],
    )
