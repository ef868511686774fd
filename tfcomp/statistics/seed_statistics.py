"""Means over seeds, paired tests at equal seeds, power laws, and labels.

Tables have a row for each number: the flags of its setting,
its `seed`, its name (as `score`), and its `value`. Runs of one seed share their
data order and much of their chance, so that the difference within a seed has
less spread than the scores have.

A power law is a line in log-log scale. Counts at the same size are repeats,
which share all that it leaves out there. So they are averaged in log scale over
seeds, and the line is fitted to these means with equal weights; the interval of
its slope is Student's at 95 % with (number of sizes - 2) degrees of freedom.
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
# By seed; None for a seed that lacks its number.
Values = Mapping[int, float | None]


@dataclass(frozen=True)
class Statistics:
    """Number over seeds: mean, sample standard deviation, 95 % interval."""

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
        values: A value for each seed.
        limits: Their range; the interval stays inside.

    Returns:
        The statistics; None if a seed lacks its value.
    """
    # The mean over the rest would flatter.
    sample = np.asarray(values, float)  # [n]; NaN for None
    count = len(sample)
    is_missing = np.isnan(sample)
    if count == 0 or is_missing.any():
        return None

    deviation = None
    if count > 1:
        deviation = float(sample.std(ddof=1))
    low = None
    high = None
    interval = compute_interval(sample.tolist(), limits)
    if interval is not None:
        low, high = interval
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
) -> tuple[float, float] | None:
    """Computes Student's 95 % interval of the mean, within the limits.

    Args:
        values: A number for each seed.
        limits: Their range; ignored if a number is outside.

    Returns:
        Both ends. None for fewer than two numbers, or if all are equal, also up
        to rounding at an end of the range: their spread is unknown.
    """
    sample = np.asarray(values, float)  # [n]
    count = len(sample)
    if count < 2 or np.ptp(sample) == 0:
        return None
    from scipy.special import stdtrit  # a tenth of the time of scipy.stats

    limits = limits.widen(sample.tolist())
    mean = sample.mean()
    if math.isinf(limits.link(mean)):
        return None  # all are at an end of the range, but for rounding
    deviation = sample.std(ddof=1)
    error = deviation / math.sqrt(count)
    quantile = stdtrit(count - 1, 0.975)
    width = quantile * error
    width *= limits.derivative(mean)
    place = limits.link(mean)
    low = limits.inverse_link(place - width)
    high = limits.inverse_link(place + width)
    return low, high


def estimate_mean(values: Values, limits: Limits = REAL) -> Statistics | None:
    """Estimates the mean over seeds, with Student's interval.

    Args:
        values: By seed.
        limits: Range of the values; the interval stays inside.

    Returns:
        The estimate, with the mean as its interval if all seeds are alike;
        None without values, or if one is missing.
    """
    numbers = list(values.values())
    statistics = compute_statistics(numbers, limits)
    if statistics is None:
        return None
    mean = statistics.mean
    if statistics.low is None and statistics.count > 1:  # all alike
        return replace(
            statistics,
            low=mean,
            high=mean,
        )
    return statistics


def estimate_geometric(values: Values, _: Limits = REAL) -> Statistics | None:
    """Estimates the geometric mean, with Student's interval of logarithms.

    Args:
        values: By seed.

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
    """Estimates the share of seeds whose value is 1 (else 0).

    *Each* end of Clopper and Pearson's interval is right in 95 % of cases.

    Args:
        values: By seed.

    Returns:
        The estimate without a deviation; None if a value is missing.
    """
    from scipy import stats

    numbers = list(values.values())
    statistics = compute_statistics(numbers)
    if statistics is None:
        return None
    count = statistics.count
    wins = round(statistics.mean * count)
    test = stats.binomtest(wins, count)
    interval = test.proportion_ci(2 * LEVEL - 1)
    return Statistics(
        mean=wins / count,
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
        table: Has the keys, and the column `value`.
        keys: Columns that tell settings and scores apart; the last one is the
            name of the score, which decides the range of its values.
        find_limits: From the name of a score to its range.

    Returns:
        The keys, `mean`, `sd`, `low`, `high`, and `n`, the number of values.
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
    """Lists mean, deviation and interval; None each without statistics."""
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
        table: Has the flags, and `score`, `seed` and `value`.
        flags: Columns that tell settings apart.
        pairs: `first` compares the first with each other one, else all.

    Returns:
        Rows with the columns of `paired.csv` (docs/sweeps.md); None where no
        number is known.
    """
    import pandas as pd

    rows = []
    by_score = table.groupby("score", sort=False)
    for score, numbers in by_score:
        samples = []
        groups = numbers.groupby([*flags, "score"], sort=False)
        for key, group in groups:
            values = group.set_index("seed")["value"]
            values = values.dropna().astype(float)
            named = zip(flags, key[:-1], strict=True)
            setting = dict(named)
            samples.append((setting, values))

        compared = list(itertools.combinations(samples, 2))
        if pairs == "first":
            num_others = len(samples) - 1
            compared = compared[:num_others]
        family = []
        for first, second in compared:
            pair = _make_pair(first, second, str(score))
            family.append(pair)
        p_values = [row["p"] for row in family]
        adjusted = adjust_by_holm(p_values)
        pairs_with_p = zip(family, adjusted, strict=True)
        for row, p_holm in pairs_with_p:
            row["p_holm"] = p_holm
        rows += family
    return pd.DataFrame(rows, dtype=object)


def _make_pair(
    first: tuple[Mapping[str, Any], pd.Series],
    second: tuple[Mapping[str, Any], pd.Series],
    score: str,
) -> dict[str, Any]:
    """Makes the row of two settings, each with its values by seed."""
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
    """Adjusts the p of a family by Holm; None where there is no test."""
    tests = []
    for index, p_value in enumerate(p_values):
        if p_value is not None:
            tests.append((p_value, index))
    tests.sort()

    adjusted: list[float | None] = [None for _ in p_values]
    num_left = len(tests)
    largest = 0.0
    for p_value, index in tests:
        # Never below the one before, so that the order stays.
        largest = max(largest, num_left * p_value)
        adjusted[index] = min(1.0, largest)
        num_left -= 1
    return adjusted


def _compare(first: pd.Series, second: pd.Series, score: str) -> dict[str, Any]:
    """Compares the values of two settings.

    Args:
        first: By seed.
        second: By seed.
        score: Its name.

    Returns:
        Numbers by column; `p_holm` is left open.
    """
    seeds = first.index.intersection(second.index)
    seeds = seeds.sort_values()
    before = first[seeds].to_numpy()  # [n]
    after = second[seeds].to_numpy()
    differences = after - before
    statistics = compute_statistics(differences)
    mean, deviation, low, high = list_numbers(statistics)
    numbers = {
        "difference": mean,
        "sd": deviation,
        "low": low,
        "high": high,
        "n": len(seeds),
        "p": _test(differences),
        "p_holm": None,
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
    }
    is_error = score.endswith(RATIO_ENDINGS)
    has_seeds = len(seeds) > 0
    if is_error and has_seeds and min(*before, *after) > 0:
        logs_before = np.log(before)
        logs_after = np.log(after)
        log_ratios = logs_after - logs_before
        logs = compute_statistics(log_ratios)
        log_mean, _, log_low, log_high = list_numbers(logs)
        numbers["ratio"] = _exp_or_none(log_mean)
        numbers["ratio_low"] = _exp_or_none(log_low)
        numbers["ratio_high"] = _exp_or_none(log_high)
    return numbers


def _exp_or_none(value: float | None) -> float | None:
    if value is None:
        return None
    return float(np.exp(value))


def _test(differences: np.ndarray) -> float | None:
    """Computes the two-sided p of the t-test; None if all are equal, or one."""
    from scipy import stats

    if len(differences) < 2 or np.ptp(differences) == 0:
        return None  # their spread is unknown
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
    """Chooses flags that tell the settings apart, and follow from no other."""
    flags: list[str] = []
    for name in settings[0]:
        if _count(settings, name) == 1:
            continue
        follows = False
        for other in flags:
            both = _count(settings, other, name)
            alone = _count(settings, other)
            follows |= both == alone
        if not follows:
            flags.append(name)
    return flags


def make_label(setting: Mapping[str, Any], names: Sequence[str]) -> str:
    """Formats the values of flags, as `encoding bump, depth 2`.

    Args:
        setting: Values by flag.
        names: The flags that count.
    """
    parts = []
    for name in names:
        value = setting[name]
        if isinstance(value, float):
            value = f"{value:.15g}"
        parts.append(f"{name} {value}")
    return ", ".join(parts) or "all"


def _count(settings: Sequence[Mapping[str, Any]], *names: str) -> int:
    """Counts the combinations of values of some flags."""
    values = set()
    for setting in settings:
        combination = [setting[name] for name in names]
        values.add(tuple(combination))
    return len(values)


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
    sizes: Sequence[int],
    counts: Sequence[float],
) -> list[SizeMean]:
    """Averages the counts of each size.

    Args:
        sizes: Sizes of grids, [n].
        counts: Positive counts at these sizes, [n].
    """
    numbers = np.asarray(counts, float)
    logs = np.log(numbers)  # [n]
    means = []
    for size in sorted(set(sizes)):
        is_size = np.equal(sizes, size)
        same_size = logs[is_size]
        low = None
        high = None
        interval = compute_interval(same_size)
        if interval is not None:
            ends = np.exp(interval)
            low, high = ends.tolist()
        log_mean = same_size.mean()
        mean = SizeMean(
            size=size,
            mean=float(np.exp(log_mean)),
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

    pairs = [[mean.size, mean.mean] for mean in means]
    logs = np.log(pairs)  # [sizes, 2]
    log_sizes, log_means = logs.T
    line = stats.linregress(log_sizes, log_means)
    low = None
    high = None
    degrees = len(means) - 2
    if degrees > 0:
        quantile = stats.t.ppf(0.975, degrees)
        width = quantile * line.stderr
        low = float(line.slope - width)
        high = float(line.slope + width)
    constant = np.exp(line.intercept)
    return PowerLaw(
        slope=float(line.slope),
        low=low,
        high=high,
        constant=float(constant),
    )
