"""Estimates: a number of every run, and its mean over the seeds of groups."""

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tfcomp.statistics.limits import CORRELATION, REAL, Limits
from tfcomp.statistics.measure import find_limits
from tfcomp.statistics.seed_statistics import Statistics, compute_statistics
from tfcomp.statistics.seed_tests import (
    compute_share_interval,
    compute_share_p,
    compute_trend_p,
    correlate_ranks,
)
from tfcomp.studies.claims.selection import Group

# A number of one run, or of several runs of the same seed (one a group).
Read = Callable[..., float | None]


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        mean: The mean over seeds, or a fitted number.
        low: Lower end of its 95 % interval; None if there is none.
        high: Upper end. Seeds that are all alike have both ends at the mean.
        count: Number of seeds (or sizes) behind it.
        values: The number of every seed, if it is a mean.
        unit: What is counted: `seeds`, `sizes`, or seeds of a `share`.
        versions: Of the code that took the measures in it, if any are.
        test: The p at which its interval just reaches a bound, if known.
        trend: Page's p of a rising and of a falling trend, if it is the mean
            rank correlation of one.
    """

    mean: float
    low: float | None
    high: float | None
    count: int
    values: Mapping[int, float]
    unit: str = "seeds"
    versions: tuple[str, ...] = ()
    test: Callable[[float], float] | None = field(default=None, compare=False)
    trend: tuple[float, float] | None = None


# From the numbers of all seeds, and their range, to an estimate.
Estimator = Callable[[Mapping[int, Any], Limits], Estimate | None]


def estimate_mean(
    values: Mapping[int, float | None], limits: Limits = REAL
) -> Estimate | None:
    """Mean over seeds; None without seeds, or if one lacks its value."""
    numbers = list(values.values())
    if None not in numbers:
        limits = limits.widen(numbers)
    found = compute_statistics(numbers, limits=limits)
    if found is None:
        return None
    low, high = found.low, found.high
    if low is None and found.count > 1:  # all alike
        low = high = found.mean
    test = functools.partial(compute_mean_p, found, limits)
    return Estimate(found.mean, low, high, found.count, values, test=test)


def estimate_geometric(
    values: Mapping[int, float | None], limits: Limits = REAL
) -> Estimate | None:
    """Geometric mean over seeds, and Student's interval of the logarithms."""
    if any(value is None or value <= 0 for value in values.values()):
        return None
    found = estimate_mean({s: math.log(v) for s, v in values.items()})
    if found is None:
        return None
    mean, low, high = (
        None if x is None else math.exp(x)
        for x in (found.mean, found.low, found.high)
    )

    def test(bound: float) -> float:
        return found.test(math.log(bound))

    return Estimate(mean, low, high, found.count, values, test=test)


def estimate_share(
    values: Mapping[int, bool | None], limits: Limits = REAL
) -> Estimate | None:
    """Share of the seeds that do something, as Clopper and Pearson have it."""
    if not values or None in values.values():
        return None
    wins, count = sum(values.values()), len(values)
    ends = compute_share_interval(wins, count)
    test = functools.partial(compute_share_p, wins, count)
    shown = {seed: float(value) for seed, value in values.items()}
    return Estimate(wins / count, *ends, count, shown, "share", test=test)


def estimate_trend(
    values: Mapping[int, Sequence[float | None] | None], limits: Limits = REAL
) -> Estimate | None:
    """Mean rank correlation with the place, and Page's test over seeds."""
    rows = list(values.values())
    sizes = {len(row or ()) for row in rows}
    if len(sizes) != 1 or min(sizes) < 3 or any(None in row for row in rows):
        return None
    shown = {seed: correlate_ranks(row) for seed, row in values.items()}
    found = estimate_mean(shown, CORRELATION)
    trend = compute_trend_p(rows) if len(rows) > 1 else None
    return replace(found, low=None, high=None, test=None, trend=trend)


def compute_mean_p(found: Statistics, limits: Limits, bound: float) -> float:
    """The p at which the interval of a mean just reaches a bound."""
    from scipy import stats

    if found.low is None:  # all alike
        return float(found.mean == bound)
    error = found.deviation / math.sqrt(found.count)
    error *= limits.measure_slope(found.mean)
    distance = abs(limits.stretch(found.mean) - limits.stretch(bound))
    return float(2 * stats.t.sf(distance / error, found.count - 1))


def make_read(read: Read | str) -> Read:
    """What reads a score or measure of a run, by its name."""
    return operator.methodcaller("get", read) if isinstance(read, str) else read


def estimate(
    read: Read | str,
    *groups: Group,
    by: Estimator = estimate_mean,
    limits: Limits | None = None,
) -> Estimate | None:
    """Estimate of a number over the seeds that all groups have.

    Args:
        read: Computes the number from one run of each group; or the name of
            a score or measure.
        *groups: One group, or several that are compared.
        by: How the numbers of the seeds become one.
        limits: The range of the number; by default that of the name.

    Returns:
        None without a common seed, and if the number is missing at one of
        them: the mean over the rest could flatter.
    """
    if limits is None:
        limits = find_limits(read) if isinstance(read, str) else REAL
    get = make_read(read)
    tables = [{run.seed: run for run in group.runs} for group in groups]
    samples = {
        seed: tuple(table[seed] for table in tables)
        for seed in tables[0]
        if all(seed in table for table in tables)
    }
    found = by({s: get(*runs) for s, runs in samples.items()}, limits)
    if found is None:
        return None
    # A number is made of measures if it is gone without them; what training
    # itself wrote has no version.
    versions = {
        str(run.measures.get("version", "unknown"))
        for runs in samples.values()
        if get(*(replace(run, measures={}) for run in runs)) is None
        for run in runs
    }
    return replace(found, versions=tuple(sorted(versions)))
