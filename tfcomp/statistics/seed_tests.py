"""Differences of settings at equal seeds, and their tests.

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

# Scores of which "half as large" says more than "0.01 less".
RATIO_ENDINGS = ("mse", "_error")
NUMBERS = (
    *("difference", "sd", "low", "high", "n", "p", "p_holm"),
    *("ratio", "ratio_low", "ratio_high"),
)


def compare_settings(
    table: pd.DataFrame, flags: Sequence[str], pairs: str = "first"
) -> pd.DataFrame:
    """Compares pairs of settings at equal seeds, for every score.

    `flags` are the columns that make a setting; `pairs` compares the `first`
    one with each other one, or `all`. The row of a pair has the flags of both
    (`<flag>_a`, `<flag>_b`), the score and `NUMBERS`: the mean difference
    b - a, p of the paired t-test, `p_holm`, adjusted for the pairs of the
    score, and for errors the geometric mean of b / a; None without a number.
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
            | _compare(first, second, str(score))
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


def _compare(first: pd.Series, second: pd.Series, score: str) -> dict[str, Any]:
    """Compares the values of two settings, given by seed."""
    seeds = first.index.intersection(second.index).sort_values()
    a, b = first[seeds].to_numpy(), second[seeds].to_numpy()  # [n]
    found = compute_statistics(b - a)
    ratio = None
    if score.endswith(RATIO_ENDINGS) and len(seeds) and min(*a, *b) > 0:
        ratio = compute_statistics(np.log(b) - np.log(a))
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
