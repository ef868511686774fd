"""Tests over seeds beside intervals of means: shares of seeds, and trends."""

from collections.abc import Sequence

import numpy as np

LEVEL = 0.95
MIN_PLACES = 3


def compute_share_interval(
    successes: int, count: int, level: float = LEVEL
) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share; it stays within 0 and 1.

    Args:
        successes: How many of the seeds.
        count: Number of seeds.
        level: How often *each* end is right. At 95 % a share above one half
            takes 5 of 5 seeds, or 9 of 10.
    """
    from scipy import stats

    found = stats.binomtest(successes, count)
    interval = found.proportion_ci(2 * level - 1, method="exact")
    return float(interval.low), float(interval.high)


def compute_share_p(successes: int, count: int, bound: float) -> float:
    """One-sided p of a share that is beyond a bound on the side it lies on."""
    from scipy import stats

    side = "less" if successes < bound * count else "greater"
    found = stats.binomtest(successes, count, bound, alternative=side)
    return float(found.pvalue)


def compute_trend_p(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Page's test: p of a rising and of a falling trend.

    Args:
        rows: Numbers in the order of the places, at least three, a row for
            every seed, which is a block: seeds are compared with themselves
            alone. At least two rows.
    """
    from scipy import stats

    table = np.asarray(rows, float)  # [seeds, places]
    # The exact distribution of many places takes minutes, and ties have none.
    method = "exact" if table.shape[1] <= 7 else "asymptotic"
    rising, falling = (
        float(stats.page_trend_test(numbers, method=method).pvalue)
        for numbers in (table, -table)
    )
    return rising, falling


def correlate_ranks(
    values: Sequence[float | None], places: Sequence[float] | None = None
) -> float | None:
    """Spearman's rank correlation of numbers with their places.

    Args:
        values: The numbers, in order.
        places: Where they are; 0, 1, 2, ... by default.

    Returns:
        The correlation; 0 for equal numbers, which have no trend; None for
        fewer than three, or if one does not exist.
    """
    if len(values) < MIN_PLACES or None in values:
        return None
    if len(set(values)) == 1:
        return 0.0
    from scipy import stats

    places = range(len(values)) if places is None else places
    return float(stats.spearmanr(list(places), list(values)).statistic)
