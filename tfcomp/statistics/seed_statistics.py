"""Means over seeds, paired tests at equal seeds, power laws, and labels.

Tables have a row for each number: the flags of its setting, its `seed`, its
name (as `score`), and its `value`. Runs of one seed share their data order and
many random draws, so that the difference within a seed has less spread than the
scores have.

A power law is a line in log-log scale. Counts of one size differ by seed only,
and deviate from the line together. They are no independent points, so they are
averaged in log scale over seeds, and the line is fitted to these means with
equal weights; the interval of its slope is Student's at 95 % with
(number of sizes - 2) degrees of freedom.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.statistics.limits import REAL, Limits

if TYPE_CHECKING:
    import pandas as pd

# Flags that may differ between runs of one setting.
IGNORED = ("seed", "eval_every", "layerwise_every", "checkpoint_seconds")
# Scores for which "half as large" says more than "0.01 less".
RATIO_ENDINGS = ("mse", "_error")
LEVEL = 0.95
# Student's interval of this level leaves out 2.5 % on either side.
UPPER_TAIL = 0.975
# From a seed to its number; None for a seed that lacks it.
Values = Mapping[int, float | None]


@dataclass(frozen=True)
class Statistics:
    """Mean, sample standard deviation and 95 % interval of a number over seeds.

    The deviation and the ends `low` and `high` are None where they are unknown,
    as for a single seed. `count` is the number of seeds.
    """

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    count: int


def compute_statistics(
    values: Sequence[float | None],
    limits: Limits = REAL,
) -> Statistics | None:
    """Computes mean, spread and interval of one value a seed.

    Args:
        values: A value for each seed, [n].
        limits: Their range; the interval stays inside.

    Returns:
        The statistics; None without values, or if a seed lacks its value.
    """
    sample = np.asarray(values, float)  # [n]; NaN for None
    count = len(sample)
    is_missing = np.isnan(sample)
    # A run without the number may have diverged: the mean over the others would
    # flatter.
    if count == 0 or is_missing.any():
        return None

    deviation = None
    if count > 1:
        deviation = float(sample.std(ddof=1))
    low, high = compute_interval(sample.tolist(), limits)
    return Statistics(
        mean=float(sample.mean()),
        deviation=deviation,
        low=low,
        high=high,
        count=count,
    )


def compute_interval(
    values: Sequence[float],
    limits: Limits = REAL,
) -> tuple[float, float] | tuple[None, None]:
    """Computes Student's 95 % interval of the mean, within the limits.

    Args:
        values: A number for each seed, [n].
        limits: Their range; ignored if a number is outside.

    Returns:
        Both ends. They are None for fewer than two numbers, or if all are
        equal, also up to rounding at an end of the range: their spread is
        unknown.
    """
    sample = np.asarray(values, float)  # [n]
    count = len(sample)
    if count < 2 or np.ptp(sample) == 0:
        return None, None
    from scipy.special import stdtrit  # a tenth of the time of scipy.stats

    limits = limits.widen(sample.tolist())
    mean = sample.mean()
    if math.isinf(limits.link(mean)):
        return None, None  # all are at an end of the range, but for rounding
    deviation = sample.std(ddof=1)
    standard_error = deviation / math.sqrt(count)
    quantile = stdtrit(count - 1, UPPER_TAIL)
    half_width = quantile * standard_error

    # The delta method: to a scale without ends, where the interval is symmetric
    # and cannot leave the range, and back.
    half_width *= limits.derivative(mean)
    linked_mean = limits.link(mean)
    low = limits.inverse_link(linked_mean - half_width)
    high = limits.inverse_link(linked_mean + half_width)
    return low, high


def estimate_mean(values: Values, limits: Limits = REAL) -> Statistics | None:
    """Estimates the mean over seeds, with Student's interval.

    Args:
        values: Numbers by seed.
        limits: Range of the values; the interval stays inside.

    Returns:
        The estimate, with the mean as both ends of its interval if all seeds
        have the same number (but for rounding, at an end of the range); None
        without values, or if one is missing.
    """
    numbers = list(values.values())
    statistics = compute_statistics(numbers, limits)
    if statistics is None:
        return None
    mean = statistics.mean
    all_equal = statistics.low is None and statistics.count > 1
    if all_equal:
        return replace(
            statistics,
            low=mean,
            high=mean,
        )
    return statistics


def estimate_geometric(values: Values, _: Limits = REAL) -> Statistics | None:
    """Estimates the geometric mean, with Student's interval of logarithms.

    Args:
        values: Numbers by seed.
        _: Unused; callers pass limits to every estimate.

    Returns:
        The estimate without a deviation; None if a value is missing or not
        positive.
    """
    logs: dict[int, float | None] = {}
    for seed, value in values.items():
        if value is None or value <= 0:
            return None
        logs[seed] = math.log(value)

    estimate = estimate_mean(logs)
    if estimate is None:
        return None
    low = None
    high = None
    if estimate.low is not None and estimate.high is not None:
        low = math.exp(estimate.low)
        high = math.exp(estimate.high)
    return Statistics(
        mean=math.exp(estimate.mean),
        deviation=None,
        low=low,
        high=high,
        count=estimate.count,
    )


def estimate_share(values: Values, _: Limits = REAL) -> Statistics | None:
    """Estimates the share of seeds whose value is 1 rather than 0.

    Each end of Clopper and Pearson's interval is a one-sided bound: `low` is
    not above the true share in 95 % of cases, and `high` is not below it in
    95 %. Both ends together are the two-sided interval at 90 %.

    Args:
        values: 1 or 0 by seed.
        _: Unused; callers pass limits to every estimate.

    Returns:
        The estimate without a deviation; None if a value is missing.
    """
    from scipy import stats

    numbers = list(values.values())
    statistics = compute_statistics(numbers)
    if statistics is None:
        return None
    count = statistics.count
    num_ones = round(statistics.mean * count)
    test = stats.binomtest(num_ones, count)
    two_sided_level = 2 * LEVEL - 1
    interval = test.proportion_ci(two_sided_level)
    return Statistics(
        mean=num_ones / count,
        deviation=None,
        low=float(interval.low),
        high=float(interval.high),
        count=count,
    )


def summarize(
    table: pd.DataFrame,
    keys: Sequence[str],
    find_limits: Callable[[str], Limits],
) -> pd.DataFrame:
    """Computes mean, spread and interval of numbers with equal keys.

    Args:
        table: A row for each number, with the keys and `value` as columns.
        keys: Columns that tell settings and scores apart; the last one is the
            name of the score, which decides the range of its values.
        find_limits: Returns the range of a score, given its name.

    Returns:
        A row for each group with equal keys: the keys, `mean`, `sd`, `low`,
        `high`, and `n`, the number of values that are not missing.
    """
    import pandas as pd

    rows = []
    groups = table.groupby(
        list(keys),
        sort=False,
        dropna=False,
    )
    for key, group in groups:
        limits = find_limits(str(key[-1]))
        values = group["value"]
        statistics = compute_statistics(values.tolist(), limits)
        numbers = list_numbers(statistics)
        count = int(values.count())
        rows.append([*key, *numbers, count])
    columns = [
        *keys,
        "mean",
        "sd",
        "low",
        "high",
        "n",
    ]
    return pd.DataFrame(
        rows,
        columns=columns,
        dtype=object,
    )


def list_numbers(statistics: Statistics | None) -> list[float | None]:
    """Lists mean, deviation, low and high; four times None for None."""
    if statistics is None:
        return [None, None, None, None]
    return [
        statistics.mean,
        statistics.deviation,
        statistics.low,
        statistics.high,
    ]


def compare_settings(
    table: pd.DataFrame,
    flags: Sequence[str],
    pairs: str = "first",
) -> pd.DataFrame:
    """Compares settings at equal seeds.

    Args:
        table: A row for each number, with the flags, `score`, `seed` and
            `value` as columns.
        flags: Columns that tell settings apart.
        pairs: `first` compares the first setting with every other one; any
            other text compares every two settings.

    Returns:
        A row for each score and pair, with the columns of `paired.csv`
        (docs/sweeps.md); None where a number is unknown.
    """
    import pandas as pd

    rows = []
    by_score = table.groupby(
        "score",
        sort=False,
    )
    for score, numbers in by_score:
        samples = []
        groups = numbers.groupby(
            [*flags, "score"],
            sort=False,
        )
        for key, group in groups:
            values = group.set_index("seed")["value"]
            values = values.dropna().astype(float)
            named = zip(flags, key[:-1], strict=True)
            setting = dict(named)
            samples.append((setting, values))

        compared = list(itertools.combinations(samples, 2))
        if pairs == "first":
            # The pairs of the first setting come first.
            num_others = len(samples) - 1
            compared = compared[:num_others]

        # Holm corrects for the number of tests of the same score.
        family = []
        for first, second in compared:
            row = _make_pair_row(first, second, str(score))
            family.append(row)
        p_values = [row["p"] for row in family]
        adjusted = adjust_by_holm(p_values)
        rows_with_p = zip(family, adjusted, strict=True)
        for row, p_holm in rows_with_p:
            row["p_holm"] = p_holm
        rows += family
    return pd.DataFrame(rows, dtype=object)


def _make_pair_row(
    first: tuple[Mapping[str, Any], pd.Series],
    second: tuple[Mapping[str, Any], pd.Series],
    score: str,
) -> dict[str, Any]:
    """Makes the row of two settings.

    Args:
        first: The flags of the setting, and its values by seed.
        second: The same for the setting it is compared with.
        score: The name of the values.
    """
    first_setting, first_values = first
    second_setting, second_values = second
    row: dict[str, Any] = {}
    for flag, value in first_setting.items():
        row[f"{flag}_a"] = value
    for flag, value in second_setting.items():
        row[f"{flag}_b"] = value
    row["score"] = score
    return row | _compare(first_values, second_values, score)


def adjust_by_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusts p-values for the number of tests, by Holm's method.

    Args:
        p_values: Of tests that are judged together; None where there is no
            test, which does not count as one.

    Returns:
        The adjusted p-values in the same order, at most 1 each.
    """
    import pandas as pd

    every_test = pd.Series(np.asarray(p_values, float))
    tests = every_test.dropna().sort_values()
    products = tests * np.arange(len(tests), 0, -1)
    # Never below the p-value before it, so that their order stays.
    adjusted = products.cummax().clip(upper=1.0).to_dict()
    return [adjusted.get(index) for index in range(len(p_values))]


def _compare(first: pd.Series, second: pd.Series, score: str) -> dict[str, Any]:
    """Compares the values of two settings at the seeds that both have.

    Args:
        first: Numbers by seed.
        second: Numbers by seed.
        score: The name of the numbers; errors also get a ratio.

    Returns:
        Numbers by column: the difference (second - first) and the ratio
        (second / first). `p_holm` is None: it depends on the other pairs.
    """
    seeds = first.index.intersection(second.index)
    seeds = seeds.sort_values()
    before = first[seeds].to_numpy()  # [n]
    after = second[seeds].to_numpy()  # [n]
    differences = after - before
    statistics = compute_statistics(differences)
    mean, deviation, low, high = list_numbers(statistics)
    numbers = {
        "difference": mean,
        "sd": deviation,
        "low": low,
        "high": high,
        "n": len(seeds),
        "p": _compute_p(differences),
        "p_holm": None,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
    }
    is_error = score.endswith(RATIO_ENDINGS)
    has_seeds = len(seeds) > 0
    # A ratio has its interval in log scale, where zero has no place.
    if is_error and has_seeds and min(*before, *after) > 0:
        log_ratios = np.log(after) - np.log(before)
        logs = compute_statistics(log_ratios)
        assert logs is not None
        ratio = exponentiate(logs)
        numbers["ratio"] = ratio.mean
        numbers["ratio_low"] = ratio.low
        numbers["ratio_high"] = ratio.high
    return numbers


def exponentiate(logs: Statistics) -> Statistics:
    """Returns the geometric mean and its interval, without a deviation.

    Args:
        logs: Statistics of logarithms.
    """
    low = None
    high = None
    if logs.low is not None and logs.high is not None:
        low = float(np.exp(logs.low))
        high = float(np.exp(logs.high))
    return Statistics(
        mean=float(np.exp(logs.mean)),
        deviation=None,
        low=low,
        high=high,
        count=logs.count,
    )


def _compute_p(differences: np.ndarray) -> float | None:
    """Computes the two-sided p-value of the paired t-test.

    Args:
        differences: Differences within seeds, [n].

    Returns:
        The p-value; None for fewer than two seeds or equal differences.
    """
    from scipy import stats

    if len(differences) < 2 or np.ptp(differences) == 0:
        return None  # the spread is unknown
    test = stats.ttest_1samp(differences, 0.0)
    return float(test.pvalue)


def format_rows(rows: Sequence[Sequence[Any]]) -> str:
    """Formats a table in Markdown; its first row is the head."""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            cell_text = str(cell)
            cells.append(cell_text.replace("|", r"\|"))
        text = " | ".join(cells)
        lines.append(f"| {text} |\n")
    rule = "---|" * len(rows[0])
    lines.insert(1, f"|{rule}\n")
    return "".join(lines)


def choose_flags(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Chooses flags that tell the settings apart, and follow from no other.

    If `width` is always 8 at `depth` 1 and 16 at `depth` 2, it follows from
    `depth` and is left out.

    Args:
        settings: Values by flag; all settings have the flags of the first.
    """
    flags: list[str] = []
    for name in settings[0]:
        if _count_combinations(settings, name) == 1:
            continue  # all settings have the same value
        follows = False
        for other in flags:
            # It adds no combination, so `other` decides its value.
            both = _count_combinations(settings, other, name)
            alone = _count_combinations(settings, other)
            follows |= both == alone
        if not follows:
            flags.append(name)
    return flags


def make_label(setting: Mapping[str, Any], names: Sequence[str]) -> str:
    """Formats the values of flags, as `encoding bump, depth 2`.

    Args:
        setting: Values by flag.
        names: The flags to format; without any, the label is `all`.
    """
    parts = []
    for name in names:
        value = setting[name]
        if isinstance(value, float):
            value = f"{value:.15g}"
        parts.append(f"{name} {value}")
    return ", ".join(parts) or "all"


def _count_combinations(
    settings: Sequence[Mapping[str, Any]], *names: str
) -> int:
    """Counts the distinct combinations of values that the flags have."""
    combinations = set()
    for setting in settings:
        values = [setting[name] for name in names]
        combinations.add(tuple(values))
    return len(combinations)


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
    sizes: Sequence[int],
    counts: Sequence[float],
) -> dict[int, Statistics]:
    """Averages the counts of each size over seeds, in log scale.

    Args:
        sizes: Sizes of grids, [n]; each as often as it has seeds.
        counts: Positive counts at these sizes, [n].

    Returns:
        Geometric means with 95 % intervals by size, ascending.
    """
    logs = np.log(np.asarray(counts, float))  # [n]
    means = {}
    for size in sorted(set(sizes)):
        is_size = np.equal(sizes, size)
        statistics = compute_statistics(logs[is_size])
        assert statistics is not None
        means[size] = exponentiate(statistics)
    return means


def fit_power_law(means: Mapping[int, Statistics]) -> PowerLaw | None:
    """Fits a line to the logarithms of sizes and means.

    Args:
        means: By `average_sizes`.

    Returns:
        The law; None for fewer than two sizes. Two sizes give no interval.
    """
    from scipy import stats

    if len(means) < 2:
        return None

    log_sizes = np.log(list(means))
    log_means = np.log([mean.mean for mean in means.values()])
    line = stats.linregress(log_sizes, log_means)
    low = None
    high = None
    degrees = len(means) - 2
    if degrees > 0:
        quantile = stats.t.ppf(UPPER_TAIL, degrees)
        half_width = quantile * line.stderr
        low = float(line.slope - half_width)
        high = float(line.slope + half_width)
    return PowerLaw(
        slope=float(line.slope),
        low=low,
        high=high,
        constant=float(np.exp(line.intercept)),
    )
