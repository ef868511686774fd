"""Means over seeds: runs that differ in nothing but their seed.

The spread is the sample standard deviation. The interval of the mean is
Student's at 95 %, within the range of the score (`limits`); a bootstrap, on
request, assumes less, but is too narrow for a handful of seeds.

Tables are pandas DataFrames, one row a number: the flags of its setting, its
`seed`, the name of the number (as `score`), and its `value`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.statistics.limits import REAL, Limits, compute_student

if TYPE_CHECKING:
    import pandas as pd

# What may differ between runs that are the same but for their seed.
IGNORED = ("seed", "eval_every", "layerwise_every", "checkpoint_seconds")


@dataclass(frozen=True)
class Statistics:
    """A number over seeds: mean, sample standard deviation, 95 % interval."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    count: int

    @property
    def half_width(self) -> float | None:
        """Half of Student's 95 % interval; None for one seed."""
        from scipy import stats

        if self.deviation is None:
            return None
        quantile = stats.t.ppf(0.975, self.count - 1)
        return float(quantile * self.deviation / math.sqrt(self.count))


def compute_statistics(
    values: Sequence[float | None],
    method: str = "student",
    limits: Limits = REAL,
) -> Statistics | None:
    """Mean, spread and interval (see `compute_interval`) of one value a seed.

    None without a seed, or if one lacks its value: it diverged, and the mean
    over the rest would flatter.
    """
    if not len(values) or any(value is None for value in values):
        return None
    sample = np.asarray(values, float)  # [n]
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else None
    ends = compute_interval(sample.tolist(), method, limits)
    low, high = ends or (None, None)
    return Statistics(float(sample.mean()), deviation, low, high, len(sample))


def compute_interval(
    values: Sequence[float], method: str = "student", limits: Limits = REAL
) -> tuple[float, float] | None:
    """The 95 % interval of the mean of finite numbers, within their range.

    The method is `student` or `bootstrap` (bias-corrected and accelerated, 9999
    resamples that are the same in every call). None for less than two numbers,
    or if all are alike.
    """
    if method == "student" or len(values) < 2 or np.ptp(values) == 0:
        return compute_student(values, limits)
    from scipy import stats

    sample, rng = np.asarray(values, float), np.random.default_rng(0)
    found = stats.bootstrap((sample,), np.mean, random_state=rng)
    low, high = found.confidence_interval
    return float(low), float(high)


def stack_scores(
    table: pd.DataFrame, keys: Sequence[str], scores: Sequence[str]
) -> pd.DataFrame:
    """A table with one row a number, from one with one row a run.

    Of its columns the keys, as the flags and `seed`, are kept; each score
    becomes a row, its name as `score` and its content as `value`, in the order
    of the runs.
    """
    tall = table.reset_index(drop=True).melt(
        list(keys), list(scores), "score", "value", ignore_index=False
    )
    return tall.sort_index(kind="stable", ignore_index=True)


def summarize(
    table: pd.DataFrame,
    keys: Sequence[str],
    find_limits: Callable[[str], Limits],
    method: str = "student",
) -> pd.DataFrame:
    """Mean, spread and interval of every group of numbers, of equal keys.

    A key `score` or `quantity` tells the range of the `value` column. One row a
    group, in the order of the table: the keys, `mean`, `sd`, `low`, `high`, and
    `n`, the number of seeds that have a value. Unless all of them do, `n` is
    all there is.
    """
    import pandas as pd

    named = [keys.index(n) for n in ("score", "quantity") if n in keys]
    rows = []
    for key, group in table.groupby(list(keys), sort=False, dropna=False):
        values = group["value"].dropna()
        found = None
        if len(values) == len(group):
            limits = find_limits(str(key[named[0]])) if named else REAL
            found = compute_statistics(values.tolist(), method, limits)
        rows.append([*key, *list_numbers(found), len(values)])
    columns = [*keys, "mean", "sd", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def get_score(metrics: Mapping[str, Any], path: str) -> float | None:
    """A number of `metrics.json` by its path, as `ood/mse`."""
    value: Any = metrics
    for part in path.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None


def list_numbers(found: Statistics | None) -> tuple[float | None, ...]:
    """Mean, deviation and interval; None each without statistics."""
    return astuple(found)[:4] if found else (None,) * 4
