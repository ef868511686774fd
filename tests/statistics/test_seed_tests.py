"""Shares of seeds and trends, against tables and by hand."""

import itertools

import pytest

from tfcomp.statistics.estimates import Estimate, estimate_share, estimate_trend


def share(wins: int, count: int) -> Estimate:
    return estimate_share({n: float(n < wins) for n in range(count)})


@pytest.mark.parametrize(
    ("wins", "count", "is_more_than_half"),
    [(5, 5, True), (4, 5, False), (9, 10, True), (8, 10, False)],
)
def test_what_it_takes_to_be_above_half(wins, count, is_more_than_half) -> None:
    found = share(wins, count)
    assert (found.low > 0.5) is is_more_than_half
    assert (found.test(0.5) < 0.05) is is_more_than_half
    assert 0 <= found.low < found.high <= 1
    mirrored = share(count - wins, count)
    ends = pytest.approx((1 - found.high, 1 - found.low))
    assert (mirrored.low, mirrored.high) == ends


def test_clopper_and_pearson_by_hand() -> None:
    assert share(5, 5).low == pytest.approx(0.05**0.2)
    assert share(5, 5).high == 1
    assert share(1, 4).test(0.5) == pytest.approx(5 / 16)


def test_page_by_hand() -> None:
    # Of the 36 pairs of orders of three, one has the largest L.
    rising = estimate_trend({0: [1, 2, 3], 1: [10, 20, 90]})
    assert rising.trend == pytest.approx((1 / 36, 1))
    falling = estimate_trend({0: [3, 2, 1], 1: [3, 2, 1]})
    assert falling.trend == pytest.approx((1, 1 / 36))
    # Seeds are blocks: how high a seed is as a whole does not count.
    orders = list(itertools.permutations(range(4)))[:5]
    table = dict(enumerate(orders))
    shifted = {s: [x + 10 * s for x in row] for s, row in table.items()}
    assert estimate_trend(table).trend == estimate_trend(shifted).trend


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
    found = estimate_trend({0: values})
    assert (found and found.mean) == expected
