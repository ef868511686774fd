"""Tables in Markdown of all sweeps and threshold studies of some evidence."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.statistics.seed_statistics import (
    choose_flags,
    format_rows,
    make_label,
)
from tfcomp.studies.claims.claim import select_fitted
from tfcomp.studies.claims.evidence import TOTAL, Evidence, ThresholdStudy
from tfcomp.studies.claims.result_text import format_number
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from pandas import DataFrame

SCORES = {  # by the heading of their column
    "ID relative MSE": "id/relative_mse",
    "OOD relative MSE": "ood/relative_mse",
    "OOD MSE": "ood/mse",
    "OOD positions in place (%)": "ood/position_accuracy",
}
ROW = ["kind", "region", "criterion"]


def make_score_tables(evidence: Evidence) -> dict[str, str]:
    """Returns a table in Markdown for each sweep, by its name."""
    sweeps: dict[str, list[Group]] = {}
    for group in evidence.groups:
        by_study: dict[str, set[int]] = {}
        for seed, run in group.runs.items():
            by_study.setdefault(run["study"], set()).add(seed)
        for name, seeds in by_study.items():
            sweeps.setdefault(name, []).append(group.keep(seeds))
    return {name: format_sweep(found) for name, found in sorted(sweeps.items())}


def format_sweep(groups: Sequence[Group]) -> str:
    """Returns the table of some runs, a row a setting.

    Its numbers are means over fitted seeds, or over all if none is fitted
    (errors: geometric means), with the lowest and the highest seed.
    """
    names = choose_flags([group.flags for group in groups])

    def order(group: Group) -> list[tuple[bool, float, str]]:
        values = [group.flags[name] for name in names]
        return [
            (True, 0.0, value) if isinstance(value, str) else (False, value, "")
            for value in values
        ]

    rows = [["setting", "fitted", *SCORES]]
    for group in sorted(groups, key=order):
        fitted = select_fitted(group)
        count = f"{len(fitted)} of {len(group)}"
        if fitted.num_restarted:
            count += f", {fitted.num_restarted} started again"
        label = make_label(group.flags, names)
        if len(names) == 1:
            label = label.removeprefix(f"{names[0]} ")
        shown = fitted if len(fitted) else group
        rows.append(
            [label, count, *(_average(shown, s) for s in SCORES.values())]
        )
    return format_rows(rows)


def _average(group: Group, score: str) -> str:
    values = group.get(score).dropna().tolist()
    if score == "ood/position_accuracy":
        values = [100 * value for value in values]
        return _format_spread(fmean(values), values) if values else "–"
    is_known = values and min(values) > 0
    return _format_spread(geometric_mean(values), values) if is_known else "–"


def _format_spread(mean: float, values: Sequence[float]) -> str:
    """Formats a mean and extremes, as `1.2 (0.8 to 1.9)` or `100 (all)`."""
    low, high = format_number(min(values)), format_number(max(values))
    ends = "all" if low == high else f"{low} to {high}"
    return f"{format_number(mean)} ({ends})"


def format_study(study: ThresholdStudy) -> str:
    """Returns the table of a threshold study, a row a kind of training set."""
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
        table = study.slopes[study.slopes["quantity"] == TOTAL]
        law = table[(table[ROW] == list(row)).all(axis=1)]
        cells = law[["slope", "low", "high"]].to_numpy(dtype=float).ravel()
        numbers = cells[np.isfinite(cells)].tolist()
        slope, *interval = [format_number(n) for n in numbers] or ["–"]
        ends = f" [{', '.join(interval)}]" if interval else ""
        rows.append([*words, *counts, f"{slope}{ends}"])
    return format_rows(rows)


def _format_searches(searches: DataFrame) -> str:
    """Formats counts as `74.1 (64 to 98)`; failed searches stand beside."""
    counts = searches.loc[searches["reached"].astype(bool), TOTAL].tolist()
    missed = len(searches) - len(counts)
    text = _format_spread(geometric_mean(counts), counts) if counts else "–"
    return text + (f", {missed} not reached" if missed else "")
