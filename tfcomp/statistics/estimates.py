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
    """Estimates the mean over seeds, with Student's interval.

    Args:
        values: By seed.
        limits: Range of the values; the interval stays inside.

    Returns:
        The estimate; None without values, or if one is missing.
    """
    numbers = _complete(values)
    if numbers is None:
        return None

    limits = limits.widen(list(numbers.values()))
    statistics = compute_statistics(list(numbers.values()), limits=limits)
    assert statistics is not None
    mean = statistics.mean
    low = statistics.low
    high = statistics.high
    if low is None and statistics.count > 1:  # all alike
        low = mean
        high = mean

    def test(bound: float) -> float:
        from scipy import stats

        if statistics.low is None or statistics.deviation is None:  # all alike
            return float(mean == bound)
        error = statistics.deviation / math.sqrt(statistics.count)
        error *= limits.derivative(mean)
        distance = abs(limits.link(mean) - limits.link(bound))
        return float(2 * stats.t.sf(distance / error, statistics.count - 1))

    return Estimate(
        mean,
        low,
        high,
        statistics.count,
        numbers,
        test=test,
    )


def _complete(values: Values) -> dict[int, float] | None:
    """Copies the values; None without any, or if one is missing."""
    # The mean over the rest could flatter.
    numbers = {}
    for seed, value in values.items():
        if value is None:
            return None
        numbers[seed] = value
    return numbers or None


def estimate_geometric(values: Values, _: Limits = REAL) -> Estimate | None:
    """Estimates the geometric mean, with Student's interval of logarithms.

    Args:
        values: By seed.

    Returns:
        The estimate; None if a value is missing or not positive.
    """
    numbers = _complete(values)
    if numbers is None or min(numbers.values()) <= 0:
        return None

    logs = {seed: math.log(value) for seed, value in numbers.items()}
    log_mean = estimate_mean(logs)
    assert log_mean is not None and log_mean.test is not None
    test_log = log_mean.test
    return Estimate(
        mean=math.exp(log_mean.mean),
        low=None if log_mean.low is None else math.exp(log_mean.low),
        high=None if log_mean.high is None else math.exp(log_mean.high),
        count=log_mean.count,
        values=numbers,
        test=lambda bound: test_log(math.log(bound)),
    )


def estimate_share(values: Values, _: Limits = REAL) -> Estimate | None:
    """Estimates the share of seeds whose value is 1 (else 0).

    *Each* end of Clopper and Pearson's interval is right in 95 % of cases.

    Args:
        values: By seed.

    Returns:
        The estimate; None if a value is missing.
    """
    from scipy import stats

    numbers = _complete(values)
    if numbers is None:
        return None

    wins = int(sum(numbers.values()))
    count = len(numbers)
    interval = stats.binomtest(wins, count).proportion_ci(2 * LEVEL - 1)

    def test(bound: float) -> float:
        side = "less" if wins < bound * count else "greater"
        result = stats.binomtest(
            wins,
            count,
            bound,
            alternative=side,
        )
        return float(result.pvalue)

    return Estimate(
        mean=wins / count,
        low=float(interval.low),
        high=float(interval.high),
        count=count,
        values=numbers,
        unit="share",
        test=test,
    )


def estimate_fact(values: Values, limits: Limits = REAL) -> Estimate | None:
    """Computes the share of seeds as a fact about them, without uncertainty.

    Args:
        values: By seed, 1 or 0.
        limits: As in the other estimators.
    """
    share = estimate_share(values, limits)
    if share is None:
        return None
    return replace(
        share,
        low=share.mean,
        high=share.mean,
        test=None,
    )


def estimate_trend(rows: Rows, _: Limits = REAL) -> Estimate | None:
    """Estimates the mean rank correlation with the place, and Page's p.

    Args:
        rows: Numbers in the order of their places, by seed.

    Returns:
        The estimate; None if a number is missing, or for fewer than 3 places.
    """
    numbers = []
    for row in rows.values():
        if row is None or None in row:
            return None
        numbers.append([float(number) for number in row if number is not None])
    sizes = {len(row) for row in numbers}
    if len(sizes) != 1 or min(sizes) < 3:
        return None

    ranks = {}
    for seed, row in zip(rows, numbers, strict=True):
        ranks[seed] = _correlate_ranks(row)
    estimate = estimate_mean(ranks, CORRELATION)
    if estimate is None:
        return None
    trend = None
    if len(numbers) > 1:
        trend = _test_trend(numbers)
    return replace(
        estimate,
        low=None,
        high=None,
        test=None,
        trend=trend,
    )


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
    """Averages the counts of each size.

    Args:
        sizes: Sizes of grids, [n].
        counts: Positive counts at these sizes, [n].
    """
    logs = np.log(np.asarray(counts, float))  # [n]
    means = []
    for size in sorted(set(sizes)):
        same_size = logs[np.equal(sizes, size)]
        low = None
        high = None
        interval = compute_interval(same_size)
        if interval is not None:
            low, high = np.exp(interval).tolist()
        mean = SizeMean(
            size=size,
            mean=float(np.exp(same_size.mean())),
            low=low,
            high=high,
            num_seeds=len(same_size),
        )
        means.append(mean)
    return means


def fit_power_law(means: Sequence[SizeMean]) -> PowerLaw | None:
    """Fits a line to the logarithms; None for fewer than two sizes."""
    from scipy import stats

    if len(means) < 2:
        return None

    logs = np.log([[mean.size, mean.mean] for mean in means])  # [sizes, 2]
    line = stats.linregress(logs[:, 0], logs[:, 1])
    low = None
    high = None
    if len(means) > 2:
        width = stats.t.ppf(0.975, len(means) - 2) * line.stderr
        low = float(line.slope - width)
        high = float(line.slope + width)
    return PowerLaw(
        slope=float(line.slope),
        low=low,
        high=high,
        constant=float(np.exp(line.intercept)),
    )
