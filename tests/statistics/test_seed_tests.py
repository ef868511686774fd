"""Shares of seeds and trends, against tables and by hand."""

import itertools

import numpy as np
import pytest

from tfcomp.statistics.seed_tests import (
    compute_share_interval,
    compute_share_p,
    compute_trend_p,
    correlate_ranks,
)


@pytest.mark.parametrize(
    ("wins", "count", "is_more_than_half"),
    [(5, 5, True), (4, 5, False), (9, 10, True), (8, 10, False)],
)
def test_what_it_takes_to_be_above_half(wins, count, is_more_than_half) -> None:
    low, high = compute_share_interval(wins, count)
    assert (low > 0.5) is is_more_than_half
    assert (compute_share_p(wins, count, 0.5) < 0.05) is is_more_than_half
    assert 0 <= low < high <= 1
    mirrored = compute_share_interval(count - wins, count)
    assert mirrored == pytest.approx((1 - high, 1 - low))


def test_clopper_and_pearson_by_hand() -> None:
    assert compute_share_interval(5, 5) == pytest.approx((0.05**0.2, 1))
    assert compute_share_p(1, 4, 0.5) == pytest.approx(5 / 16)


def test_page_by_hand() -> None:
    # Of the 36 pairs of orders of three, one has the largest L.
    rising, falling = compute_trend_p([[1, 2, 3], [10, 20, 90]])
    assert (rising, falling) == pytest.approx((1 / 36, 1))
    assert compute_trend_p([[3, 2, 1]] * 2) == pytest.approx((1, 1 / 36))
    # Seeds are blocks: how high a seed is as a whole does not count.
    orders = list(itertools.permutations(range(4)))
    table = np.array(orders[:5], float)
    shifted = table + 10 * np.arange(5)[:, None]
    assert compute_trend_p(table) == compute_trend_p(shifted)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], 1.0),
        ([3, 2, 1], -1.0),
        ([2, 2, 2], 0.0),
        ([1, 2], None),
        ([1, None, 3], None),
        ([], None),
    ],
)
def test_rank_correlation(values: list, expected: float | None) -> None:
    assert correlate_ranks(values) == expected
