"""Means and intervals over seeds, against textbooks and by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tfcomp.evaluation.metrics import find_limits
from tfcomp.statistics.limits import (
    CORRELATION,
    POSITIVE,
    REAL,
    SHARE,
    Limits,
)
from tfcomp.statistics.seed_statistics import (
    compute_interval,
    compute_statistics,
    summarize,
)

# Numbers of users whose intervals could not be.
IMPOSSIBLE = [
    (CORRELATION, [-1.0, -0.8, 0.6]),
    (POSITIVE, [0.0, 0.9, 0.02]),
    (SHARE, [1.0, 0.6, 1.0]),
    (Limits(high=1.0), [0.99, -3.0, 1.0]),
    (Limits(0.5, 1.0), [0.5, 0.5, 1.0]),
]


@pytest.mark.parametrize(("limits", "values"), IMPOSSIBLE)
def test_no_interval_leaves_the_range(limits: Limits, values: list) -> None:
    low, high = compute_interval(values)
    assert low < limits.low or high > limits.high
    low, high = compute_interval(values, limits=limits)
    assert limits.low <= low < np.mean(values) < high <= limits.high


def test_known_scales() -> None:
    assert REAL.link(-3.0) == -3.0 == REAL.inverse_link(-3.0)
    assert POSITIVE.link(5.0) == pytest.approx(math.log(5))
    assert SHARE.link(0.2) == pytest.approx(math.log(0.25))
    assert CORRELATION.link(0.3) == pytest.approx(2 * math.atanh(0.3))
    for limits, values in IMPOSSIBLE:
        middle = float(np.mean(values))
        place = limits.link(middle)
        assert limits.inverse_link(place) == pytest.approx(middle)
        slope = (limits.link(middle + 1e-6) - place) / 1e-6
        assert limits.derivative(middle) == pytest.approx(slope, rel=1e-3)


def test_narrow_intervals_are_those_of_student(rng) -> None:
    values = 0.5 + 1e-4 * rng.normal(size=6)
    error = stats.sem(values)
    expected = stats.t.interval(0.95, 5, values.mean(), error)
    for limits in (REAL, POSITIVE, SHARE, CORRELATION):
        assert compute_interval(values, limits=limits) == pytest.approx(
            expected, rel=1e-6
        )


def test_a_number_outside_has_another_range() -> None:
    values = [0.5, 1.5, 0.7]
    assert compute_interval(values, limits=SHARE) == compute_interval(values)


def test_degenerate_intervals() -> None:
    for values in ([], [1.0], [0.3, 0.3, 0.3]):
        assert compute_interval(values) is None
    low, high = compute_interval([1.0, 1.0, 1.0, 2.0])
    assert low < 1.25 < high


def test_statistics_against_a_textbook() -> None:
    found = compute_statistics([1.0, 2.0, 6.0])
    # Student's quantile for 2 degrees of freedom is 4.3027.
    half = 4.3027 * math.sqrt(7 / 3)
    assert (found.mean, found.count) == (3.0, 3)
    assert found.deviation == pytest.approx(math.sqrt(7))
    assert found.half_width == pytest.approx(half, rel=1e-4)
    ends = pytest.approx((3 - half, 3 + half), rel=1e-4)
    assert (found.low, found.high) == ends


def test_degenerate_statistics() -> None:
    # The mean over those that did not diverge would flatter.
    for values in ([], [None, None], [1.0, 2.0, None]):
        assert compute_statistics(values) is None
    single = compute_statistics([2.0])
    assert (single.mean, single.count) == (2.0, 1)
    assert single.deviation is single.low is single.half_width is None


def test_summary_of_settings() -> None:
    runs = [(3, 0, 1.0, 1.0), (3, 1, 3.0, None), (2, 0, 4.0, 2.0)]
    rows = [
        (depth, seed, score, value)
        for depth, seed, *values in runs
        for score, value in zip(("mse", "peaks"), values, strict=True)
    ]
    columns = ["depth", "seed", "score", "value"]
    numbers = pd.DataFrame(rows, columns=columns)
    found = summarize(numbers, ["depth", "score"], find_limits)
    keys = found[["depth", "score", "mean", "n"]].to_numpy().tolist()
    # One seed has no peaks: there is no mean, and n says why.
    assert keys == [
        [3, "mse", 2.0, 2],
        [3, "peaks", None, 1],
        [2, "mse", 4.0, 1],
        [2, "peaks", 2.0, 1],
    ]
    low, high = compute_interval([1.0, 3.0], limits=POSITIVE)
    assert 0 < low < 1 and high > 3
    assert tuple(found.loc[0, ["sd", "low", "high"]]) == (2**0.5, low, high)
    assert list(found.loc[2, ["sd", "low", "high"]]) == [None] * 3
