"""Shares of seeds, trends and power laws, against scipy and by hand."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tfcomp.statistics import estimates
from tfcomp.statistics.estimates import average_sizes, estimate_trend


def share(wins: int, count: int) -> estimates.Estimate:
    return estimates.estimate_share({n: float(n < wins) for n in range(count)})


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


SIZES = (16, 20, 24, 28, 32)


def test_exact_power_laws() -> None:
    cubes = average_sizes(SIZES, [0.5 * n**3 for n in SIZES])
    law = estimates.fit_power_law(cubes)
    assert (law.slope, law.constant) == pytest.approx((3, 0.5))
    assert (law.low, law.high) == pytest.approx((3, 3), abs=1e-6)
    few = estimates.fit_power_law(cubes[:2])
    assert few.slope == pytest.approx(3)
    assert few.low is None and few.high is None
    assert estimates.fit_power_law(cubes[:1]) is None


def test_slope_and_interval_against_linregress(
    rng: np.random.Generator,
) -> None:
    sizes = np.repeat(SIZES, 3)
    counts = sizes**2 * np.exp(rng.normal(0, 0.2, len(sizes)))
    law = estimates.fit_power_law(average_sizes(sizes, counts))
    means = [np.log(counts[sizes == n]).mean() for n in SIZES]
    line = stats.linregress(np.log(SIZES), means)
    assert law.slope == pytest.approx(line.slope)
    # Equal numbers of repeats: all points have the same line.
    every = stats.linregress(np.log(sizes), np.log(counts))
    assert law.slope == pytest.approx(every.slope)
    half_width = 3.18245 * line.stderr  # Student, 3 degrees of freedom
    assert law.high - law.slope == pytest.approx(half_width, rel=1e-5)
    assert law.slope - law.low == pytest.approx(half_width, rel=1e-5)


def test_mean_of_a_size_and_its_interval() -> None:
    first, second = average_sizes([20, 10, 20], [8.0, 5.0, 2.0])
    mean = pytest.approx(5.0)
    assert first == estimates.SizeMean(10, mean, None, None, num_seeds=1)
    assert second.mean == pytest.approx(4.0)
    # Logs differ by ln 4: sd = ln 4 / sqrt 2, Student with 1 degree: 12.706.
    half_width = 12.7062 * np.log(4) / np.sqrt(2) / np.sqrt(2)
    assert np.log(second.high / 4) == pytest.approx(half_width, rel=1e-4)
    assert np.log(4 / second.low) == pytest.approx(half_width, rel=1e-4)
