"""Paired differences and intervals, against hand calculations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tfcomp.statistics.paired_comparison import adjust_by_holm
from tfcomp.statistics.paired_comparison import compare_settings
from tfcomp.statistics.seed_statistics import Setting
from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.statistics.seed_statistics import summarize


def make_setting(depth: int, values: dict[int, float | None]) -> Setting:
    metrics = [{"ood_mse": value} for value in values.values()]
    return Setting({"depth": depth}, list(values), metrics)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_student_interval(count: int, rng: np.random.Generator) -> None:
    values = rng.normal(size=count)
    expected = stats.t.interval(
        0.95, count - 1, loc=values.mean(), scale=stats.sem(values)
    )
    assert compute_interval(values) == pytest.approx(expected)


def test_student_interval_covers_the_mean(rng: np.random.Generator) -> None:
    """In 95 of 100 cases; 2000 cases scatter by half a percent."""
    intervals = [compute_interval(rng.normal(size=5)) for _ in range(2000)]
    covered = np.mean([low < 0 < high for low, high in intervals])
    assert covered == pytest.approx(0.95, abs=0.015)


def test_bootstrap_interval(rng: np.random.Generator) -> None:
    values = rng.exponential(size=200)
    low, high = compute_interval(values, "bootstrap")
    student = compute_interval(values)
    assert (low, high) == pytest.approx(student, rel=0.05)
    # Of skewed numbers it is not symmetric: longer on the side of the tail.
    assert high - values.mean() > values.mean() - low
    assert compute_interval(values, "bootstrap") == (low, high)


@pytest.mark.parametrize("method", ["student", "bootstrap"])
def test_degenerate_intervals(method: str) -> None:
    assert compute_interval([], method) is None
    assert compute_interval([1.0], method) is None
    assert compute_interval([0.3, 0.3, 0.3], method) == (0.3, 0.3)
    low, high = compute_interval([1.0, 1.0, 1.0, 2.0], method)
    assert low < 1.25 < high


def test_summary_by_hand() -> None:
    settings = [
        make_setting(2, {0: 1.0, 1: 2.0, 2: 6.0}),
        make_setting(3, {0: 4.0}),
        make_setting(4, {0: 1.0, 1: 2.0, 2: None}),
    ]
    first, second, third = summarize(settings, ["ood_mse"])
    # Student's quantile for 2 degrees of freedom is 4.3027.
    half = 4.3027 * math.sqrt(7 / 3)
    assert first == {
        "depth": 2,
        "score": "ood_mse",
        "mean": 3.0,
        "sd": pytest.approx(math.sqrt(7)),
        "low": pytest.approx(3 - half, rel=1e-4),
        "high": pytest.approx(3 + half, rel=1e-4),
        "n": 3,
    }
    assert (second["mean"], second["sd"], second["n"]) == (4.0, None, 1)
    assert (second["low"], second["high"]) == (None, None)
    # One seed diverged: there is no mean, and n says why.
    assert (third["mean"], third["low"], third["n"]) == (None, None, 2)


def test_pairs_by_hand() -> None:
    a = make_setting(2, {0: 1.0, 1: 2.0, 2: 4.0, 5: 9.0})
    b = make_setting(3, {2: 1.0, 1: 1.0, 0: 0.5, 7: 9.0})
    (row,) = compare_settings([a, b], ["ood_mse"])
    # Seeds 0, 1 and 2: differences -0.5, -1 and -3, ratios 1/2, 1/2 and 1/4.
    differences = np.array([-0.5, -1.0, -3.0])
    deviation = differences.std(ddof=1)
    half = 4.3027 * deviation / math.sqrt(3)
    assert (row["depth_a"], row["depth_b"], row["n"]) == (2, 3, 3)
    assert row["difference"] == pytest.approx(-1.5)
    assert row["sd"] == pytest.approx(deviation)
    assert row["low"] == pytest.approx(-1.5 - half, rel=1e-4)
    assert row["high"] == pytest.approx(-1.5 + half, rel=1e-4)
    expected = stats.ttest_rel([0.5, 1.0, 1.0], [1.0, 2.0, 4.0]).pvalue
    assert row["p"] == row["p_holm"] == pytest.approx(expected)
    logs = np.log(np.array([1 / 2, 1 / 2, 1 / 4]))
    half = 4.3027 * logs.std(ddof=1) / math.sqrt(3)
    mean = logs.mean()
    assert row["ratio"] == pytest.approx(math.exp(mean))
    assert row["ratio_low"] == pytest.approx(math.exp(mean - half), rel=1e-4)
    assert row["ratio_high"] == pytest.approx(math.exp(mean + half), rel=1e-4)
    assert list(row)[-4:] == ["p_holm", "ratio", "ratio_low", "ratio_high"]


def test_pairing_removes_what_seeds_share(rng: np.random.Generator) -> None:
    shared = rng.normal(size=5) * 100
    a = make_setting(2, dict(enumerate(shared)))
    b = make_setting(3, dict(enumerate(shared + 1 + 0.1 * rng.random(5))))
    (row,) = compare_settings([a, b], ["ood_mse"])
    assert 1 < row["low"] < row["high"] < 1.1


def test_pairs_that_tell_little() -> None:
    one = make_setting(2, {0: 1.0})
    other = make_setting(3, {0: 3.0, 1: 4.0})
    apart = make_setting(4, {8: 1.0, 9: 1.0})
    same = make_setting(5, {0: 3.5, 1: 4.5})
    rows = compare_settings([one, other, apart, same], ["ood_mse"])
    found = {(r["depth_a"], r["depth_b"]): r for r in rows}
    assert len(rows) == 6
    single = found[2, 3]
    assert (single["difference"], single["n"], single["p"]) == (2.0, 1, None)
    assert single["low"] is None
    assert single["ratio"] == pytest.approx(3.0)
    none = found[3, 4]
    assert (none["difference"], none["n"], none["ratio"]) == (None, 0, None)
    constant = found[3, 5]  # in all seeds: as certain as a test can be
    assert (constant["low"], constant["high"]) == (0.5, 0.5)
    assert constant["p"] == constant["p_holm"] == 0


def test_no_difference_at_all() -> None:
    settings = [make_setting(d, {0: 1.0, 1: 2.0}) for d in (2, 3)]
    (row,) = compare_settings(settings, ["ood_mse"])
    assert row["difference"] == 0 and row["p"] == row["p_holm"] == 1


@pytest.mark.parametrize(
    ("score", "values"),
    [("ood_position_accuracy", (0.5, 1.0)), ("ood_mse", (0.0, 1.0))],
)
def test_only_positive_errors_have_a_ratio(
    score: str, values: tuple[float, float]
) -> None:
    settings = [
        Setting({"depth": depth}, [0, 1], [{score: v} for v in values])
        for depth in (2, 3)
    ]
    (row,) = compare_settings(settings, [score])
    assert row["ratio"] is None


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to the one before), 0.5 x 1.
    found = adjust_by_holm([0.03, None, 0.5, 0.01, 0.02])
    assert found == pytest.approx([0.06, None, 0.5, 0.04, 0.06])
    assert adjust_by_holm([0.6, 0.7]) == [1.0, 1.0]
    assert adjust_by_holm([]) == []


def test_holm_adjusts_within_a_score() -> None:
    rng = np.random.default_rng(1)
    settings = [
        Setting(
            {"depth": depth},
            [0, 1, 2],
            [{"a": rng.random(), "b": rng.random()} for _ in range(3)],
        )
        for depth in (2, 3, 4)
    ]
    rows = compare_settings(settings, ["a", "b"])
    for score in "ab":
        family = [row for row in rows if row["score"] == score]
        smallest = min(row["p"] for row in family)
        adjusted = min(row["p_holm"] for row in family)
        assert adjusted == pytest.approx(min(1, 3 * smallest))
