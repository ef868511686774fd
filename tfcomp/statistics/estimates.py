"""Estimates over seeds, and the growth of a count with the size of the grid.

    estimate_mean({0: 0.81, 1: 0.84, 2: 0.79}, limits=SHARE)

A power law is a line in log-log scale. Counts at the same size are repeats,
which share all that it leaves out there. So they are averaged in log scale over
seeds, and the line is fitted to these means with equal weights; the interval of
its slope is Student's at 95 % with (number of sizes - 2) degrees of freedom.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tfcomp.statistics.limits import CORRELATION, REAL, Limits
from tfcomp.statistics.seed_statistics import (
    compute_interval,
    compute_statistics,
)

LEVEL = 0.95
# By seed; None for a seed that lacks its number.
Values = Mapping[int, float | None]
Rows = Mapping[int, Sequence[float | None] | None]


@dataclass(frozen=True)
class Estimate:
    """Number with its uncertainty, the 95 % interval."""

    mean: float  # over seeds, or a fitted number
    low: float | None  # the mean if seeds are all alike
    high: float | None
    count: int
    values: Mapping[int, float]  # by seed, of a mean
    unit: str = "seeds"  # that are counted, or `sizes`, or of a `share`
    # Computes the p at which the interval just reaches a bound.
    test: Callable[[float], float] | None = field(default=None, compare=False)
    trend: tuple[float, float] | None = None  # Page's p, rising and falling


Estimator = Callable[..., Estimate | None]


def estimate_mean(values: Values, limits: Limits = REAL) -> Estimate | None:
    """Returns the mean over seeds, and Student's interval."""
    numbers = _complete(values)
    if numbers is None:
        return None
    limits = limits.widen(list(numbers.values()))
    found = compute_statistics(list(numbers.values()), limits=limits)
    assert found is not None
    mean, low, high = found.mean, found.low, found.high
    if low is None and found.count > 1:  # all alike
        low = high = mean

    def test(bound: float) -> float:
        from scipy import stats

        if found.low is None or found.deviation is None:  # all alike
            return float(mean == bound)
        error = found.deviation / math.sqrt(found.count)
        error *= limits.derivative(mean)
        distance = abs(limits.link(mean) - limits.link(bound))
        return float(2 * stats.t.sf(distance / error, found.count - 1))

    return Estimate(mean, low, high, found.count, numbers, test=test)


def _complete(values: Values) -> dict[int, float] | None:
    """Returns the values; None without any, or if one is missing."""
    # The mean over the rest could flatter.
    known = {seed: v for seed, v in values.items() if v is not None}
    return known if values and len(known) == len(values) else None


def estimate_geometric(values: Values, _: Limits = REAL) -> Estimate | None:
    """Returns the geometric mean, and Student's interval of the logarithms."""
    numbers = _complete(values)
    if numbers is None or min(numbers.values()) <= 0:
        return None
    logs = estimate_mean({s: math.log(v) for s, v in numbers.items()})
    assert logs is not None and logs.test is not None
    test = logs.test
    low, high = (
        None if x is None else math.exp(x) for x in (logs.low, logs.high)
    )
    ends = math.exp(logs.mean), low, high
    return Estimate(
        *ends, logs.count, numbers, test=lambda bound: test(math.log(bound))
    )


def estimate_share(values: Values, _: Limits = REAL) -> Estimate | None:
    """Returns the share of seeds whose value is 1 (else 0).

    *Each* end of Clopper and Pearson's interval is right in 95 % of cases.
    """
    from scipy import stats

    numbers = _complete(values)
    if numbers is None:
        return None
    wins, count = int(sum(numbers.values())), len(numbers)
    ends = stats.binomtest(wins, count).proportion_ci(2 * LEVEL - 1)

    def test(bound: float) -> float:
        side = "less" if wins < bound * count else "greater"
        found = stats.binomtest(wins, count, bound, alternative=side)
        return float(found.pvalue)

    low, high = float(ends.low), float(ends.high)
    return Estimate(wins / count, low, high, count, numbers, "share", test)


def estimate_fact(values: Values, limits: Limits = REAL) -> Estimate | None:
    """Returns the share of seeds as a fact about them, without uncertainty."""
    found = estimate_share(values, limits)
    if found is None:
        return None
    return replace(found, low=found.mean, high=found.mean, test=None)


def estimate_trend(rows: Rows, _: Limits = REAL) -> Estimate | None:
    """Returns the mean rank correlation with the place, and Page's p."""
    numbers = [[x for x in row or () if x is not None] for row in rows.values()]
    sizes = {len(row or ()) for row in rows.values()} | {*map(len, numbers)}
    if len(sizes) != 1 or min(sizes) < 3:
        return None
    ranks = zip(rows, map(_correlate_ranks, numbers), strict=True)
    found = estimate_mean(dict(ranks), CORRELATION)
    if found is None:
        return None
    trend = _test_trend(numbers) if len(numbers) > 1 else None
    return replace(found, low=None, high=None, test=None, trend=trend)


def _correlate_ranks(values: Sequence[float]) -> float:
    """Computes Spearman's rank correlation with the place; 0 if all equal."""
    from scipy import stats

    if len(set(values)) == 1:
        return 0.0
    return float(stats.spearmanr(range(len(values)), values).statistic)


def _test_trend(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Computes Page's p of a rising and of a falling trend within each seed."""
    from scipy import stats

    table = np.asarray(rows, float)
    # The exact distribution of many places takes minutes, and ties have none.
    method = "exact" if table.shape[1] <= 7 else "asymptotic"
    rising = stats.page_trend_test(table, method=method).pvalue
    falling = stats.page_trend_test(-table, method=method).pvalue
    return float(rising), float(falling)


@dataclass(frozen=True)
class SizeMean:
    """Geometric mean of the counts of one size over seeds; 95 % interval."""

    size: int
    mean: float
    low: float | None
    high: float | None
    num_seeds: int


@dataclass(frozen=True)
class PowerLaw:
    """count = constant * size ** slope, with the 95 % interval of the slope."""

    slope: float
    low: float | None
    high: float | None
    constant: float

    def describe(self) -> str:
        """Formats exponent and interval, as `N^2.10 (1.80 to 2.40)`."""
        if self.low is None:
            return f"N^{self.slope:.2f}"
        return f"N^{self.slope:.2f} ({self.low:.2f} to {self.high:.2f})"


def average_sizes(
    sizes: Sequence[int], counts: Sequence[float]
) -> list[SizeMean]:
    """Averages the positive counts of each size."""
    logs, means = np.log(np.asarray(counts, float)), []  # [n]
    for size in sorted(set(sizes)):
        chosen = logs[np.equal(sizes, size)]
        ends = compute_interval(chosen)
        low, high = np.exp(ends).tolist() if ends else (None, None)
        mean = float(np.exp(chosen.mean()))
        means.append(SizeMean(size, mean, low, high, len(chosen)))
    return means


def fit_power_law(means: Sequence[SizeMean]) -> PowerLaw | None:
    """Fits a line to the logarithms; returns None for fewer than two sizes."""
    from scipy import stats

    if len(means) < 2:
        return None
    logs = np.log([[mean.size, mean.mean] for mean in means])
    line = stats.linregress(logs[:, 0], logs[:, 1])
    low = high = None
    if len(means) > 2:
        width = stats.t.ppf(0.975, len(means) - 2) * line.stderr
        low, high = float(line.slope - width), float(line.slope + width)
    constant = float(np.exp(line.intercept))
    return PowerLaw(float(line.slope), low, high, constant)
