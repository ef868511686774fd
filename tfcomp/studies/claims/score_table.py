"""Scores of every setting of a sweep, as a table: what its seeds did.

A row is a setting. Numbers are those of its fitted seeds, or of all where none
is fitted: the geometric mean of errors and the mean of positions in place, each
with the lowest and the highest seed, where a single seed that fails is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

from tfcomp.statistics.setting_table import (
    choose_flags,
    format_rows,
    make_label,
)
from tfcomp.studies.claims.claim import select_fitted
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.packed_evidence import (
    TOTAL,
    ThresholdStudy,
    find_sweep,
)
from tfcomp.studies.claims.result_text import format_number
from tfcomp.studies.claims.selection import Group, list_groups

if TYPE_CHECKING:
    from pandas import DataFrame

ERRORS = {  # heading: score
    "ID relative MSE": "id/relative_mse",
    "OOD relative MSE": "ood/relative_mse",
    "OOD MSE": "ood/mse",
}
POSITIONS = ("OOD positions in place (%)", "ood/position_accuracy")
ROW = ["kind", "region", "criterion"]


def make_score_tables(evidence: Evidence) -> dict[str, str]:
    """A table in Markdown for each sweep, by the name of the sweep."""
    sweeps: dict[str, list[Run]] = {}
    for run in evidence.runs:
        sweeps.setdefault(find_sweep(run.path).name, []).append(run)
    return {name: format_sweep(runs) for name, runs in sorted(sweeps.items())}


def format_sweep(runs: Sequence[Run]) -> str:
    """The table of some runs, a row a setting."""
    groups = list_groups(runs)
    names = choose_flags([group[0].setting for group in groups])
    rows = [["setting", "fitted", *ERRORS, POSITIONS[0]]]
    for group in sorted(groups, key=lambda group: _order(group[0], names)):
        fitted = select_fitted(Group(tuple(group))).runs
        count = f"{len(fitted)} of {len(group)}"
        if again := sum(run.num_trainings > 1 for run in fitted):
            count += f", {again} started again"
        cells = [make_label(group[0].setting, names), count]
        for score in (*ERRORS.values(), POSITIONS[1]):
            values = [run.get(score) for run in fitted or group]
            known = [value for value in values if value is not None]
            cells.append(_format_score(known, score == POSITIONS[1]))
        rows.append(cells)
    return format_rows(rows)


def _order(run: Run, names: Sequence[str]) -> list[tuple[bool, float, str]]:
    values = [run.setting[name] for name in names]
    return [
        (True, 0.0, value) if isinstance(value, str) else (False, value, "")
        for value in values
    ]


def _format_score(values: Sequence[float], is_share: bool) -> str:
    if is_share and values:
        percents = [100 * value for value in values]
        return format_spread(fmean(percents), percents)
    if not values or min(values) <= 0:
        return "–"
    return format_spread(geometric_mean(values), values)


def format_spread(mean: float, values: Sequence[float]) -> str:
    """As `1.2 (0.8 to 1.9)`, or `100 (all)` of seeds that are alike."""
    low, high = format_number(min(values)), format_number(max(values))
    ends = "all" if low == high else f"{low} to {high}"
    return f"{format_number(mean)} ({ends})"


def format_study(study: ThresholdStudy) -> str:
    """The table of a threshold study, a row a kind of training set."""
    found = study.thresholds
    sizes = sorted(found["grid_size"].unique())
    heads = [f"N = {size:g}" for size in sizes]
    rows = [["training set", "held out", "criterion", *heads, "slope"]]
    for row, searches in found.groupby(ROW, sort=False):
        words = [str(word).replace("_", " ") for word in row]
        counts = [
            _format_searches(searches[searches["grid_size"] == size])
            for size in sizes
        ]
        rows.append([*words, *counts, _find_slope(study, row)])
    return format_rows(rows)


def _format_searches(searches: DataFrame) -> str:
    """As `74.1 (64 to 98)`; searches that failed are counted beside."""
    reached = searches[searches["reached"].astype(bool)]
    counts = reached[TOTAL].tolist()
    missed = len(searches) - len(counts)
    text = format_spread(geometric_mean(counts), counts) if counts else "–"
    return text + (f", {missed} not reached" if missed else "")


def _find_slope(study: ThresholdStudy, row: tuple) -> str:
    """The slope of all examples over the size, with its 95 % interval."""
    table = study.slopes[study.slopes["quantity"] == TOTAL]
    found = table[(table[ROW] == list(row)).all(axis=1)]
    numbers = found[["slope", "low", "high"]].stack().dropna()
    slope, *interval = [format_number(n) for n in numbers] or ["–"]
    return f"{slope} [{', '.join(interval)}]" if interval else slope
