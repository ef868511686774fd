"""Tests over seeds: shares, trends, and differences at equal seeds.

Runs of one seed share their data order and much of their chance, so that the
difference within a seed has less spread than the scores have.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.statistics.seed_statistics import compute_statistics, list_numbers

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
# Scores of which "half as large" says more than "0.01 less".
RATIO_ENDINGS = ("mse", "_error")
NUMBERS = (
    *("difference", "sd", "low", "high", "n", "p", "p_holm"),
    *("ratio", "ratio_low", "ratio_high"),
)


def compute_share_interval(successes: int, count: int) -> tuple[float, float]:
    """Computes Clopper and Pearson's interval of a share of seeds.

    *Each* end is right in 95 % of cases.
    """
    from scipy import stats

    found = stats.binomtest(successes, count)
    interval = found.proportion_ci(2 * LEVEL - 1, method="exact")
    return float(interval.low), float(interval.high)


def compute_share_p(successes: int, count: int, bound: float) -> float:
    """Computes the one-sided p of a share beyond a bound, on its own side."""
    from scipy import stats

    side = "less" if successes < bound * count else "greater"
    found = stats.binomtest(successes, count, bound, alternative=side)
    return float(found.pvalue)


def compute_trend_p(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Computes Page's p of a rising and of a falling trend within each seed.

    The numbers are [seeds, places], at least [2, 3].
    """
    from scipy import stats

    table = np.asarray(rows, float)
    # The exact distribution of many places takes minutes, and ties have none.
    method = "exact" if table.shape[1] <= 7 else "asymptotic"
    rising, falling = (
        float(stats.page_trend_test(numbers, method=method).pvalue)
        for numbers in (table, -table)
    )
    return rising, falling


def correlate_ranks(values: Sequence[float | None]) -> float | None:
    """Computes Spearman's rank correlation of numbers with their places.

    0 for equal numbers; None for fewer than three, or if one does not exist.
    """
    if len(values) < 3 or None in values:
        return None
    if len(set(values)) == 1:
        return 0.0
    from scipy import stats

    return float(stats.spearmanr(range(len(values)), list(values)).statistic)


def compare_settings(
    table: pd.DataFrame,
    flags: Sequence[str],
    method: str = "student",
    pairs: str = "first",
) -> pd.DataFrame:
    """Compares pairs of settings at equal seeds, for every score.

    Args:
        table: One row a number: the flags, `seed`, `score` and `value`.
        flags: The columns that make a setting.
        method: Of the intervals, as in `compute_interval`.
        pairs: `first` compares the first setting with each other one, `all`
            compares every pair.

    Returns:
        A row for each pair: the flags of both settings (`<flag>_a`,
        `<flag>_b`), the score, the mean `difference` b - a, its sd, low, high
        and n; `p` of the paired t-test and `p_holm`, adjusted for the pairs of
        the score; for errors `ratio` b / a (geometric mean) with `ratio_low`
        and `ratio_high`. None where a number does not exist.
    """
    import pandas as pd

    rows = []
    for score, numbers in table.groupby("score", sort=False):
        settings = [
            (setting, group.set_index("seed")["value"].dropna().astype(float))
            for setting, group in numbers.groupby([*flags, "score"], sort=False)
        ]
        chosen = list(itertools.combinations(settings, 2))
        if pairs == "first":
            chosen = list(itertools.product(settings[:1], settings[1:]))
        names = [f"{flag}_{side}" for side in "ab" for flag in flags]
        family = [
            dict(zip(names, [*a[:-1], *b[:-1]], strict=True))
            | {"score": score}
            | _compare(first, second, str(score), method)
            for (a, first), (b, second) in chosen
        ]
        adjusted = adjust_by_holm([row["p"] for row in family])
        for row, p_holm in zip(family, adjusted, strict=True):
            row["p_holm"] = p_holm
        rows += family
    return pd.DataFrame(rows, dtype=object)


def adjust_by_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusts the p of a family by Holm; None where there is no test."""
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p_value, index) in enumerate(known):
        # Never below the one before, so that the order stays.
        largest = max(largest, (len(known) - rank) * p_value)
        adjusted[index] = min(1.0, largest)
    return adjusted


def _compare(
    first: pd.Series, second: pd.Series, score: str, method: str
) -> dict[str, Any]:
    """Compares the values of two settings, given by seed."""
    seeds = first.index.intersection(second.index).sort_values()
    a, b = first[seeds].to_numpy(), second[seeds].to_numpy()  # [n]
    found = compute_statistics(b - a, method)
    ratio = None
    if score.endswith(RATIO_ENDINGS) and len(seeds) and min(*a, *b) > 0:
        ratio = compute_statistics(np.log(b) - np.log(a), method)
    mean, _, low, high = list_numbers(ratio)
    numbers = [*list_numbers(found), len(seeds), _test(b - a), None]
    numbers += [x if x is None else float(np.exp(x)) for x in (mean, low, high)]
    return dict(zip(NUMBERS, numbers, strict=True))


def _test(differences: np.ndarray) -> float | None:
    """Computes the two-sided p of the t-test; None for one difference."""
    from scipy import stats

    if len(differences) < 2:
        return None
    if np.ptp(differences) == 0:  # the limit for a vanishing spread
        return float(differences[0] == 0)
    return float(stats.ttest_1samp(differences, 0.0).pvalue)
