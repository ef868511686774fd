"""Means over seeds: runs that differ in nothing but their seed.

Tables have a row for each number: the flags of its setting,
its `seed`, its name (as `score`), and its `value`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.statistics.limits import REAL, Limits

if TYPE_CHECKING:
    import pandas as pd

# What may differ between runs that are the same but for their seed.
IGNORED = ("seed", "eval_every", "layerwise_every", "checkpoint_seconds")


@dataclass(frozen=True)
class Statistics:
    """Number over seeds: mean, sample standard deviation, 95 % interval."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    count: int

    @property
    def half_width(self) -> float | None:
        """Returns half of Student's 95 % interval; None for one seed."""
        from scipy import stats

        if self.deviation is None:
            return None
        quantile = stats.t.ppf(0.975, self.count - 1)
        return float(quantile * self.deviation / math.sqrt(self.count))


def compute_statistics(
    values: Sequence[float | None], limits: Limits = REAL
) -> Statistics | None:
    """Computes mean, spread and interval of one value a seed.

    None if a seed lacks its value: the mean over the rest would flatter.
    """
    sample = np.asarray(values, float)  # [n]; NaN for None
    if not len(sample) or np.isnan(sample).any():
        return None
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else None
    ends = compute_interval(sample.tolist(), limits)
    low, high = ends or (None, None)
    return Statistics(float(sample.mean()), deviation, low, high, len(sample))


def compute_interval(
    values: Sequence[float], limits: Limits = REAL
) -> tuple[float, float] | None:
    """Computes Student's 95 % interval of the mean of finite numbers.

    It stays within the limits, which are ignored if a number is outside. None
    for fewer than two numbers, or if all are equal: their spread is unknown.
    """
    sample = np.asarray(values, float)  # [n]
    if len(sample) < 2 or np.ptp(sample) == 0:
        return None
    from scipy.special import stdtrit  # a tenth of the time of scipy.stats

    limits = limits.widen(sample.tolist())
    mean, error = sample.mean(), sample.std(ddof=1) / math.sqrt(len(sample))
    width = stdtrit(len(sample) - 1, 0.975) * error
    width *= limits.derivative(mean)
    place = limits.link(mean)
    low, high = place - width, place + width
    return limits.inverse_link(low), limits.inverse_link(high)


def summarize(
    table: pd.DataFrame,
    keys: Sequence[str],
    find_limits: Callable[[str], Limits],
) -> pd.DataFrame:
    """Computes mean, spread and interval of numbers with equal keys.

    The range of `value` follows from the key `score` or `quantity`. The rows
    are in the order of the table: the keys, mean, sd, low, high (None unless
    all seeds have a value), and n, the number of seeds that have one.
    """
    import pandas as pd

    named = [keys.index(n) for n in ("score", "quantity") if n in keys]
    rows = []
    for key, group in table.groupby(list(keys), sort=False, dropna=False):
        values = group["value"].dropna()
        found = None
        if len(values) == len(group):
            limits = find_limits(str(key[named[0]])) if named else REAL
            found = compute_statistics(values.tolist(), limits)
        rows.append([*key, *list_numbers(found), len(values)])
    columns = [*keys, "mean", "sd", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def list_numbers(found: Statistics | None) -> tuple[float | None, ...]:
    """Lists mean, deviation and interval; None each without statistics."""
    return astuple(found)[:4] if found else (None,) * 4
