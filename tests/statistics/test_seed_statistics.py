"""Means and intervals over seeds, against textbooks and by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tfcomp.evaluation.metrics import find_limits
from tfcomp.statistics.limits import POSITIVE
from tfcomp.statistics.seed_statistics import (
    compute_interval,
    compute_statistics,
    summarize,
)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_student_interval(count: int, rng: np.random.Generator) -> None:
    values = rng.normal(size=count)
    mean, error = values.mean(), stats.sem(values)
    expected = stats.t.interval(0.95, count - 1, mean, error)
    assert compute_interval(values) == pytest.approx(expected)


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
