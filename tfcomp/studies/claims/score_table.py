"""Scores of every setting of a sweep, as a table: what its seeds did.

A row is a setting. Numbers are those of its fitted seeds, or of all where none
is fitted: the geometric mean of errors and the mean of positions in place, each
with the lowest and the highest seed, where a single seed that fails is seen.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean, geometric_mean

from tfcomp.statistics.setting_labels import choose_flags, make_label
from tfcomp.statistics.setting_table import format_rows
from tfcomp.studies.claims.claim import select_fitted
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.result_text import format_number
from tfcomp.studies.claims.selection import Group, list_groups

ERRORS = {  # heading: score
    "ID relative MSE": "id/relative_mse",
    "OOD relative MSE": "ood/relative_mse",
    "OOD MSE": "ood/mse",
}
POSITIONS = ("OOD positions in place (%)", "ood/position_accuracy")


def make_score_tables(evidence: Evidence) -> dict[str, str]:
    """A table in Markdown for each sweep, by the name of the sweep."""
    sweeps: dict[str, list[Run]] = {}
    for run in evidence.runs:
        sweeps.setdefault(name_sweep(run), []).append(run)
    return {name: format_sweep(runs) for name, runs in sorted(sweeps.items())}


def name_sweep(run: Run) -> str:
    """The folder of the sweep that a run belongs to, or its own."""
    is_trial = run.path.parent.name == "trials"
    return (run.path.parents[1] if is_trial else run.path).name


def format_sweep(runs: Sequence[Run]) -> str:
    """The table of some runs, a row a setting."""
    groups = list_groups(runs)
    names = choose_flags([group[0].setting for group in groups])
    rows = [["setting", "fitted", *ERRORS, POSITIONS[0]]]
    for group in sorted(groups, key=lambda group: _order(group[0], names)):
        fitted = select_fitted(Group(tuple(group))).runs
        shown = fitted or group
        cells = [make_label(group[0].setting, names), _count(fitted, group)]
        cells += [_format_errors(shown, score) for score in ERRORS.values()]
        rows.append([*cells, _format_shares(shown, POSITIONS[1])])
    return format_rows(rows)


def _order(run: Run, names: Sequence[str]) -> list[tuple[bool, float, str]]:
    values = [run.setting[name] for name in names]
    return [
        (True, 0.0, value) if isinstance(value, str) else (False, value, "")
        for value in values
    ]


def _count(fitted: Sequence[Run], runs: Sequence[Run]) -> str:
    again = sum(run.num_trainings > 1 for run in fitted)
    text = f"{len(fitted)} of {len(runs)}"
    return f"{text}, {again} started again" if again else text


def _format_errors(runs: Iterable[Run], score: str) -> str:
    values = [v for run in runs if (v := run.get(score)) is not None]
    if not values or min(values) <= 0:
        return "–"
    return format_spread(geometric_mean(values), values)


def _format_shares(runs: Iterable[Run], score: str) -> str:
    values = [100 * v for run in runs if (v := run.get(score)) is not None]
    return format_spread(fmean(values), values) if values else "–"


def format_spread(mean: float, values: Sequence[float]) -> str:
    """As `1.2 (0.8 to 1.9)`, or `100 (all)` of seeds that are alike."""
    low, high = format_number(min(values)), format_number(max(values))
    ends = "all" if low == high else f"{low} to {high}"
    return f"{format_number(mean)} ({ends})"
