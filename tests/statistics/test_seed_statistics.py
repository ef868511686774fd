"""Statistics over seeds, against textbooks and by hand; labels of settings."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tfcomp.metrics.registry import find_limits
from tfcomp.statistics import seed_statistics
from tfcomp.statistics.limits import CORRELATION, POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.seed_statistics import choose_flags, compute_interval

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
    found = seed_statistics.compute_statistics([1.0, 2.0, 6.0])
    # Student's quantile for 2 degrees of freedom is 4.3027.
    half = 4.3027 * math.sqrt(7 / 3)
    assert (found.mean, found.count) == (3.0, 3)
    assert found.deviation == pytest.approx(math.sqrt(7))
    ends = pytest.approx((3 - half, 3 + half), rel=1e-4)
    assert (found.low, found.high) == ends


def test_degenerate_statistics() -> None:
    # The mean over those that did not diverge would flatter.
    for values in ([], [None, None], [1.0, 2.0, None]):
        assert seed_statistics.compute_statistics(values) is None
    single = seed_statistics.compute_statistics([2.0])
    assert (single.mean, single.count) == (2.0, 1)
    assert single.deviation is single.low is single.high is None


def test_summary_of_settings() -> None:
    runs = [(3, 0, 1.0, 1.0), (3, 1, 3.0, None), (2, 0, 4.0, 2.0)]
    rows = [
        (depth, seed, score, value)
        for depth, seed, *values in runs
        for score, value in zip(("mse", "peaks"), values, strict=True)
    ]
    columns = ["depth", "seed", "score", "value"]
    numbers = pd.DataFrame(rows, columns=columns)
    found = seed_statistics.summarize(numbers, ["depth", "score"], find_limits)
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


def test_pairs_by_hand() -> None:
    settings = {
        2: {0: 1.0, 1: 2.0, 2: 4.0, 5: 9.0},
        3: {2: 1.0, 1: 1.0, 0: 0.5, 7: 9.0},
    }
    rows = [
        {"depth": depth, "seed": seed, "score": "ood_mse", "value": value}
        for depth, values in settings.items()
        for seed, value in values.items()
    ]
    table = pd.DataFrame(rows, dtype=object)
    (row,) = seed_statistics.compare_settings(table, ["depth"]).to_dict(
        "records"
    )
    # Seeds 0, 1 and 2: differences -0.5, -1 and -3, ratios 1/2, 1/2 and 1/4.
    deviation = np.std([-0.5, -1.0, -3.0], ddof=1)
    half = 4.3027 * deviation / math.sqrt(3)
    assert (row["depth_a"], row["depth_b"], row["n"]) == (2, 3, 3)
    assert row["difference"] == pytest.approx(-1.5)
    assert row["sd"] == pytest.approx(deviation)
    assert row["low"] == pytest.approx(-1.5 - half, rel=1e-4)
    assert row["high"] == pytest.approx(-1.5 + half, rel=1e-4)
    expected = stats.ttest_rel([0.5, 1.0, 1.0], [1.0, 2.0, 4.0]).pvalue
    assert row["p"] == row["p_holm"] == pytest.approx(expected)
    logs = np.log([1 / 2, 1 / 2, 1 / 4])
    factor = math.exp(4.3027 * logs.std(ddof=1) / math.sqrt(3))
    mean = math.exp(logs.mean())
    assert row["ratio"] == pytest.approx(mean)
    assert row["ratio_low"] == pytest.approx(mean / factor, rel=1e-4)
    assert row["ratio_high"] == pytest.approx(mean * factor, rel=1e-4)
    assert list(row)[-4:] == ["p_holm", "ratio", "ratio_low", "ratio_high"]
    # Differences of no spread have no test, as they have no interval.
    table["value"] = table["depth"].astype(float)
    equal = seed_statistics.compare_settings(table, ["depth"]).iloc[0]
    assert equal["difference"] == 1 and equal["n"] == 3
    assert equal[["low", "p", "p_holm"]].isna().all()


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to the one before), 0.5 x 1.
    found = seed_statistics.adjust_by_holm([0.03, None, 0.5, 0.01, 0.02])
    assert found == pytest.approx([0.06, None, 0.5, 0.04, 0.06])
    assert seed_statistics.adjust_by_holm([0.6, 0.7]) == [1.0, 1.0]
    assert seed_statistics.adjust_by_holm([]) == []


def test_flags_that_follow_from_others_are_left_out() -> None:
    settings = [
        {"encoding": code, "epochs": epochs, "width": 8, "depth": depth}
        for code, epochs in (("bump", 50), ("ramp", 100))
        for depth in (2, 3)
    ]
    flags = choose_flags(settings)
    assert flags == ["encoding", "depth"]
    labels = [
        seed_statistics.make_label(setting, flags) for setting in settings
    ]
    assert labels[0] == "encoding bump, depth 2" and len(set(labels)) == 4


def test_a_flag_is_named_though_others_together_tell_it() -> None:
    """Estimates one row of a table with many small changes."""
    rows = [("one_hot", 3, 0.0), ("bump", 1, 0.0), ("one_hot", 1, 0.1)]
    settings = [{"sigma": s, "noise": n, "encoding": e} for e, s, n in rows]
    assert choose_flags(settings) == ["sigma", "noise", "encoding"]


def test_a_single_setting() -> None:
    assert choose_flags([{}]) == choose_flags([{"depth": 2}]) == []
    assert seed_statistics.make_label({"depth": 2}, []) == "all"
    assert seed_statistics.make_label({"rate": 0.0}, ["rate"]) == "rate 0"
    near = seed_statistics.make_label({"rate": 0.12345678}, ["rate"])
    assert near == "rate 0.12345678"  # no two settings have one label


def test_a_region_of_two_parts_is_one_cell() -> None:
    text = seed_statistics.format_rows([["region", "n"], ["corner:3|x:1", 2]])
    assert text.splitlines()[-1] == r"| corner:3\|x:1 | 2 |"
