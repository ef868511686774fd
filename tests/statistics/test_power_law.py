"""The slope of a power law against scipy, and the means that it is fit to."""

import numpy as np
import pytest
from scipy import stats

from tfcomp.statistics.estimates import SizeMean, average_sizes, fit_power_law

SIZES = (16, 20, 24, 28, 32)


def test_exact_power_law() -> None:
    law = fit_power_law(average_sizes(SIZES, [0.5 * n**3 for n in SIZES]))
    assert law.slope == pytest.approx(3)
    assert law.constant == pytest.approx(0.5)
    assert (law.low, law.high) == pytest.approx((3, 3), abs=1e-6)


def test_slope_and_interval_against_linregress(
    rng: np.random.Generator,
) -> None:
    sizes = np.repeat(SIZES, 3)
    counts = sizes**2 * np.exp(rng.normal(0, 0.2, len(sizes)))
    law = fit_power_law(average_sizes(sizes, counts))
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
    assert first == SizeMean(10, mean, None, None, num_seeds=1)
    assert second.mean == pytest.approx(4.0)
    # Logs differ by ln 4: sd = ln 4 / sqrt 2, Student with 1 degree: 12.706.
    half_width = 12.7062 * np.log(4) / np.sqrt(2) / np.sqrt(2)
    assert np.log(second.high / 4) == pytest.approx(half_width, rel=1e-4)
    assert np.log(4 / second.low) == pytest.approx(half_width, rel=1e-4)


def test_too_few_sizes() -> None:
    assert fit_power_law(average_sizes([16, 16], [3, 4])) is None
    law = fit_power_law(average_sizes([16, 32], [10, 20]))
    assert law.slope == pytest.approx(1)
    assert law.low is None and law.high is None
