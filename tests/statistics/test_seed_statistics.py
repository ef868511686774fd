"""Statistics over seeds, against textbooks and by hand; labels of settings."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tfcomp.metrics.registry import find_limits
from tfcomp.statistics import seed_statistics
from tfcomp.statistics.limits import CORRELATION, POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.seed_statistics import (
    Statistics,
    average_sizes,
    choose_flags,
    compute_interval,
    compute_statistics,
    estimate_geometric,
    estimate_mean,
    fit_power_law,
    make_label,
)

STUDENT_2 = 4.3027  # the quantile of Student for 2 degrees of freedom
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

    middle = float(np.mean(values))
    place = limits.link(middle)
    assert limits.inverse_link(place) == pytest.approx(middle)
    slope = (limits.link(middle + 1e-6) - place) / 1e-6
    assert limits.derivative(middle) == pytest.approx(slope, rel=1e-3)


def test_known_scales() -> None:
    assert REAL.link(-3.0) == -3.0 == REAL.inverse_link(-3.0)
    assert POSITIVE.link(5.0) == pytest.approx(math.log(5))
    assert SHARE.link(0.2) == pytest.approx(math.log(0.25))
    assert CORRELATION.link(0.3) == pytest.approx(2 * math.atanh(0.3))


@pytest.mark.parametrize("limits", [REAL, POSITIVE, SHARE, CORRELATION])
def test_narrow_intervals_are_those_of_student(limits: Limits, rng) -> None:
    values = 0.5 + 1e-4 * rng.normal(size=6)
    error = stats.sem(values)
    expected = stats.t.interval(0.95, 5, values.mean(), error)
    interval = compute_interval(values, limits=limits)
    assert interval == pytest.approx(expected, rel=1e-6)


def test_a_number_outside_has_another_range() -> None:
    values = [0.5, 1.5, 0.7]
    assert compute_interval(values, limits=SHARE) == compute_interval(values)


def test_statistics_against_a_textbook() -> None:
    statistics = compute_statistics([1.0, 2.0, 6.0])
    half = STUDENT_2 * math.sqrt(7 / 3)
    assert (statistics.mean, statistics.count) == (3.0, 3)
    assert statistics.deviation == pytest.approx(math.sqrt(7))
    assert statistics.low == pytest.approx(3 - half, rel=1e-4)
    assert statistics.high == pytest.approx(3 + half, rel=1e-4)


@pytest.mark.parametrize("values", [[], [None, None], [1.0, 2.0, None]])
def test_a_seed_without_its_number(values: list) -> None:
    # The mean over those that did not diverge would flatter.
    by_seed = dict(enumerate(values))
    assert compute_statistics(values) is None
    assert estimate_mean(by_seed) is None
    assert estimate_geometric(by_seed) is None
    assert seed_statistics.estimate_share(by_seed) is None


def test_no_spread_is_no_interval() -> None:
    single = Statistics(2.0, None, None, None, 1)
    assert compute_statistics([2.0]) == estimate_mean({0: 2.0}) == single
    assert compute_interval([0.3, 0.3, 0.3]) is None
    alike = estimate_mean({0: 0.5, 1: 0.5})  # of a claim: it may be a fact
    assert (alike.low, alike.high) == (0.5, 0.5)


def test_geometric_mean() -> None:
    estimate = estimate_geometric({0: 2.0, 1: 8.0})
    low, high = compute_interval(np.log([2.0, 8.0]))
    ends = [estimate.low, estimate.mean, estimate.high]
    assert ends == pytest.approx([math.exp(low), 4.0, math.exp(high)])
    assert estimate_geometric({0: 2.0, 1: 0.0}) is None


@pytest.mark.parametrize(
    ("wins", "count", "is_more_than_half"),
    [(5, 5, True), (4, 5, False), (9, 10, True), (8, 10, False)],
)
def test_shares(wins: int, count: int, is_more_than_half: bool) -> None:
    values = {seed: float(seed < wins) for seed in range(count)}
    share = seed_statistics.estimate_share(values)
    assert share.mean == wins / count
    assert (share.low > 0.5) is is_more_than_half
    if wins == count:  # Clopper and Pearson by hand
        assert share.low == pytest.approx(0.05 ** (1 / count))
        assert share.high == 1


def test_summary_of_settings() -> None:
    rows = [
        (3, 0, "mse", 1.0),
        (3, 0, "peaks", 1.0),
        (3, 1, "mse", 3.0),
        (3, 1, "peaks", None),
        (2, 0, "mse", 4.0),
    ]
    numbers = pd.DataFrame(rows, columns=["depth", "seed", "score", "value"])
    summary = seed_statistics.summarize(
        numbers, ["depth", "score"], find_limits
    )
    # One seed has no peaks: there is no mean, and n says why.
    assert summary[["depth", "score", "mean", "n"]].to_numpy().tolist() == [
        [3, "mse", 2.0, 2],
        [3, "peaks", None, 1],
        [2, "mse", 4.0, 1],
    ]
    low, high = compute_interval([1.0, 3.0], limits=POSITIVE)
    assert 0 < low < 1 and high > 3
    assert tuple(summary.loc[0, ["sd", "low", "high"]]) == (2**0.5, low, high)
    assert list(summary.loc[2, ["sd", "low", "high"]]) == [None] * 3


def make_pair_table() -> pd.DataFrame:
    """Two depths, which share the seeds 0, 1 and 2."""
    settings = {
        2: {0: 1.0, 1: 2.0, 2: 4.0, 5: 9.0},
        3: {2: 1.0, 1: 1.0, 0: 0.5, 7: 9.0},
    }
    rows = []
    for depth, values in settings.items():
        for seed, value in values.items():
            rows.append((depth, seed, "ood_mse", value))
    columns = ["depth", "seed", "score", "value"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def test_pairs_by_hand() -> None:
    table = make_pair_table()
    pairs = seed_statistics.compare_settings(table, ["depth"])
    (row,) = pairs.to_dict("records")
    # Differences -0.5, -1 and -3, ratios 1/2, 1/2 and 1/4.
    deviation = np.std([-0.5, -1.0, -3.0], ddof=1)
    half = STUDENT_2 * deviation / math.sqrt(3)
    logs = np.log([1 / 2, 1 / 2, 1 / 4])
    log_half = STUDENT_2 * logs.std(ddof=1) / math.sqrt(3)
    p = stats.ttest_rel([0.5, 1.0, 1.0], [1.0, 2.0, 4.0]).pvalue
    expected = {
        "depth_a": 2,
        "depth_b": 3,
        "difference": -1.5,
        "sd": deviation,
        "low": -1.5 - half,
        "high": -1.5 + half,
        "n": 3,
        "p": p,
        "p_holm": p,
        "ratio": math.exp(logs.mean()),
        "ratio_low": math.exp(logs.mean() - log_half),
        "ratio_high": math.exp(logs.mean() + log_half),
    }
    assert row.pop("score") == "ood_mse"
    assert row == pytest.approx(expected, rel=1e-4)
    assert list(row) == list(expected)


def test_differences_of_no_spread_have_no_test() -> None:
    table = make_pair_table()
    table["value"] = table["depth"].astype(float)
    equal = seed_statistics.compare_settings(table, ["depth"]).iloc[0]
    assert equal["difference"] == 1 and equal["n"] == 3
    assert equal[["low", "p", "p_holm"]].isna().all()


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [("first", [[1, 2], [1, 3]]), ("all", [[1, 2], [1, 3], [2, 3]])],
)
def test_compared_settings(pairs: str, expected: list) -> None:
    rows = [(depth, 0, "mse", 1.0) for depth in (1, 2, 3)]
    table = pd.DataFrame(rows, columns=["depth", "seed", "score", "value"])
    rows = seed_statistics.compare_settings(table, ["depth"], pairs)
    assert rows[["depth_a", "depth_b"]].to_numpy().tolist() == expected


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to the one before), 0.5 x 1.
    adjusted = seed_statistics.adjust_by_holm([0.03, None, 0.5, 0.01, 0.02])
    assert adjusted == pytest.approx([0.06, None, 0.5, 0.04, 0.06])
    assert seed_statistics.adjust_by_holm([0.6, 0.7]) == [1.0, 1.0]
    assert seed_statistics.adjust_by_holm([]) == []


def test_flags_that_follow_from_others_are_left_out() -> None:
    settings = []
    for code, epochs in (("bump", 50), ("ramp", 100)):
        for depth in (2, 3):
            setting = {"encoding": code, "epochs": epochs, "width": 8}
            settings.append({**setting, "depth": depth})
    flags = choose_flags(settings)
    assert flags == ["encoding", "depth"]
    labels = [make_label(setting, flags) for setting in settings]
    assert labels[0] == "encoding bump, depth 2" and len(set(labels)) == 4


def test_a_flag_is_named_though_others_together_tell_it() -> None:
    """Estimates one row of a table with many small changes."""
    rows = [("one_hot", 3, 0.0), ("bump", 1, 0.0), ("one_hot", 1, 0.1)]
    settings = [{"sigma": s, "noise": n, "encoding": e} for e, s, n in rows]
    assert choose_flags(settings) == ["sigma", "noise", "encoding"]


@pytest.mark.parametrize(
    ("setting", "names", "label"),
    [
        ({"depth": 2}, [], "all"),
        ({"rate": 0.0}, ["rate"], "rate 0"),
        # No two settings have one label.
        ({"rate": 0.12345678}, ["rate"], "rate 0.12345678"),
    ],
)
def test_labels(setting: dict, names: list, label: str) -> None:
    assert choose_flags([setting]) == []
    assert make_label(setting, names) == label


def test_a_region_of_two_parts_is_one_cell() -> None:
    text = seed_statistics.format_rows([["region", "n"], ["corner:3|x:1", 2]])
    assert text.splitlines()[-1] == r"| corner:3\|x:1 | 2 |"


SIZES = (16, 20, 24, 28, 32)


def test_exact_power_laws() -> None:
    cubes = average_sizes(SIZES, [0.5 * n**3 for n in SIZES])
    law = fit_power_law(cubes)
    assert (law.slope, law.constant) == pytest.approx((3, 0.5))
    assert (law.low, law.high) == pytest.approx((3, 3), abs=1e-6)
    few = fit_power_law(cubes[:2])
    assert few.slope == pytest.approx(3)
    assert few.low is None and few.high is None
    assert fit_power_law(cubes[:1]) is None


def test_slope_and_interval_against_linregress(rng) -> None:
    sizes = np.repeat(SIZES, 3)
    counts = sizes**2 * np.exp(rng.normal(0, 0.2, len(sizes)))
    law = fit_power_law(average_sizes(sizes, counts))
    means = [np.log(counts[sizes == n]).mean() for n in SIZES]
    line = stats.linregress(np.log(SIZES), means)
    half_width = 3.18245 * line.stderr  # Student, 3 degrees of freedom
    assert law.slope == pytest.approx(line.slope)
    assert law.high - law.slope == pytest.approx(half_width, rel=1e-5)
    assert law.slope - law.low == pytest.approx(half_width, rel=1e-5)


def test_mean_of_a_size_and_its_interval() -> None:
    first, second = average_sizes([20, 10, 20], [8.0, 5.0, 2.0])
    mean = pytest.approx(5.0)
    assert first == seed_statistics.SizeMean(10, mean, None, None, num_seeds=1)
    assert second.mean == pytest.approx(4.0)
    # Logs differ by ln 4: sd = ln 4 / sqrt 2, Student with 1 degree: 12.706.
    half_width = 12.7062 * np.log(4) / np.sqrt(2) / np.sqrt(2)
    assert np.log(second.high / 4) == pytest.approx(half_width, rel=1e-4)
    assert np.log(4 / second.low) == pytest.approx(half_width, rel=1e-4)
