"""Functions that `claims.toml` names: columns, and how numbers are combined."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tfcomp.statistics import estimates
from tfcomp.statistics.verdicts import above, below
from tfcomp.studies.claims.claim import CODE, find_met, minus
from tfcomp.tables.flatten import END
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from pandas import DataFrame, Series

APART = 5.0  # axes of a factor whose profiles differ by more are told apart
# As C22 has it.
COMPOSES = {
    "ood/position_accuracy": above(0.99),
    "ood/relative_mse": below(0.02),
}


def is_sign_right(group: Group, when: str) -> Series:
    """Returns 1 for runs whose axes are apart just if they succeed, else 0."""
    apart, good = group.get("axis_ratio", when), find_met(group, COMPOSES)
    is_known = apart.notna() & good.notna()
    return ((apart > APART) == (good > 0)).astype(float).where(is_known)


def read_deviation(group: Group, when: str = END) -> DataFrame:
    """Returns medians of |log-volume - its median over ID|, OOD less ID."""
    return _compare_sides(group, "log_volume_median_deviation", when)


def read_shift(group: Group, when: str = END) -> DataFrame:
    """Returns median log-volume, OOD less ID, less the same of the code.

    The code has a border effect of its own, the same for every seed: a bump
    that the edge of the grid cuts has another log-volume.
    """
    stages = _compare_sides(group, "log_volume_median", when)
    return stages.sub(stages[CODE], axis=0) if CODE in stages else stages


def _compare_sides(group: Group, name: str, when: str) -> DataFrame:
    outside = group.get_stages(f"{name}_ood", when)
    return outside - group.get_stages(f"{name}_id", when)


def _log_ratio(first: float, second: float) -> float | None:
    return math.log10(first / second) if first > 0 and second > 0 else None


def _find_largest_fall(stages: list[float]) -> float | None:
    falls = (before - after for before, after in pairwise(stages))
    return max(falls, default=None)


COLUMNS: dict[str, Callable[[Group, str], Any]] = {
    "axes tell success": is_sign_right,
    "deviation, OOD less ID": read_deviation,
}
# Of the numbers of the stages; the image is the last of them.
OVER: dict[str, Callable[[list[float]], Any]] = {
    "all": list,
    "hidden": lambda stages: stages[:-1],
    "last": lambda stages: stages[-1],
    "largest": max,
    "largest fall": _find_largest_fall,
    "mean": fmean,
    "mean of later half": lambda stages: fmean(stages[len(stages) // 2 :]),
    "change": lambda stages: stages[-1] - stages[0],
    "change of hidden": lambda stages: stages[-2] - stages[0],
}
ACROSS: dict[str, Callable[..., Any]] = {
    "all": lambda *numbers: list(numbers),
    "difference": minus,
    "log10 of ratio": _log_ratio,
}
BY: dict[str, estimates.Estimator] = {
    "fact": estimates.estimate_fact,
    "geometric": estimates.estimate_geometric,
    "share": estimates.estimate_share,
    "trend": estimates.estimate_trend,
}
