"""Intervals within the range of a quantity."""

import math

import numpy as np
import pytest
from scipy import stats

from tfcomp.statistics.limits import CORRELATION, POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.seed_statistics import compute_interval

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
