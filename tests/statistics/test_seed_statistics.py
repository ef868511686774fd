"""Statistics over seeds, against textbooks and by hand; labels of settings."""

import math

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

from tfcomp.metrics.registry import find_limits
from tfcomp.statistics.limits import CORRELATION, POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.seed_statistics import (
    Statistics,
    adjust_by_holm,
    average_sizes,
    choose_flags,
    compare_settings,
    compute_interval,
    compute_statistics,
    estimate_geometric,
    estimate_mean,
    estimate_share,
    fit_power_law,
    format_rows,
    make_label,
    summarize,
)

COLUMNS = ["depth", "seed", "score", "value"]
SIZES = (16, 20, 24, 28, 32)


def compute_student(values: list[float]) -> tuple[float, float]:
    """Student's interval, as SciPy has it."""
    mean = np.mean(values)
    error = stats.sem(values)
    return stats.t.interval(
        0.95,
        df=len(values) - 1,
        loc=mean,
        scale=error,
    )


@pytest.mark.parametrize(
    "limits, values",
    [
        (CORRELATION, [-1.0, -0.8, 0.6]),
        (POSITIVE, [0.0, 0.9, 0.02]),
        (Limits(high=1.0), [0.99, -3.0, 1.0]),
    ],
)
def test_no_interval_leaves_the_range(limits, values):
    middle = float(np.mean(values))

    low, high = compute_interval(values)
    assert low < limits.low or high > limits.high

    low, high = compute_interval(values, limits)
    assert limits.low <= low < middle < high <= limits.high

    place = limits.link(middle)
    slope = (limits.link(middle + 1e-6) - place) / 1e-6
    assert limits.inverse_link(place) == approx(middle)
    assert limits.derivative(middle) == approx(slope, rel=1e-3)


def test_known_scales():
    assert REAL.link(-3.0) == -3.0
    assert POSITIVE.link(5.0) == approx(math.log(5))
    assert SHARE.link(0.2) == approx(math.log(0.25))
    assert CORRELATION.link(0.3) == approx(2 * math.atanh(0.3))


@pytest.mark.parametrize("limits", [REAL, POSITIVE, SHARE, CORRELATION])
def test_narrow_intervals_are_those_of_student(limits, rng):
    values = 0.5 + 1e-4 * rng.normal(size=6)

    interval = compute_interval(values, limits)

    expected = compute_student(values)
    assert interval == approx(expected, rel=1e-6)


def test_a_number_outside_has_another_range():
    values = [0.5, 1.5, 0.7]
    assert compute_interval(values, SHARE) == compute_interval(values)


def test_statistics_against_a_textbook():
    statistics = compute_statistics([1.0, 2.0, 6.0])

    half = 4.3027 * math.sqrt(7 / 3)  # Student, 2 degrees of freedom
    low = approx(3 - half, rel=1e-4)
    high = approx(3 + half, rel=1e-4)
    assert statistics == Statistics(3, approx(math.sqrt(7)), low, high, 3)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        [1.0, 2.0, None],
    ],
)
def test_a_seed_without_its_number(values):
    # The mean over those that did not diverge would flatter.
    by_seed = dict(enumerate(values))
    assert compute_statistics(values) is None
    for estimate in (estimate_mean, estimate_geometric, estimate_share):
        assert estimate(by_seed) is None


def test_no_spread_is_no_interval():
    single = Statistics(2.0, None, None, None, 1)
    assert compute_statistics([2.0]) == single
    assert estimate_mean({0: 2.0}) == single
    assert compute_interval([0.3, 0.3, 0.3]) == (None, None)

    alike = estimate_mean({0: 0.5, 1: 0.5})  # of a claim: it may be a fact
    assert alike.low == alike.high == 0.5


def test_geometric_mean():
    estimate = estimate_geometric({0: 2.0, 1: 8.0})

    low, high = compute_interval(np.log([2.0, 8.0]))
    assert estimate.mean == approx(4)
    assert estimate.low == approx(math.exp(low))
    assert estimate.high == approx(math.exp(high))
    assert estimate_geometric({0: 2.0, 1: 0.0}) is None


@pytest.mark.parametrize(
    "wins, count, is_more_than_half",
    [
        (5, 5, True),
        (4, 5, False),
        (9, 10, True),
        (8, 10, False),
    ],
)
def test_shares(wins, count, is_more_than_half):
    is_won = [float(seed < wins) for seed in range(count)]

    share = estimate_share(dict(enumerate(is_won)))

    assert share.mean == wins / count
    assert (share.low > 0.5) is is_more_than_half
    if wins == count:  # Clopper and Pearson by hand
        assert share.low == approx(0.05 ** (1 / count))
        assert share.high == 1


def test_summary_of_settings():
    rows = [
        (3, 0, "mse", 1.0),
        (3, 0, "peaks", 1.0),
        (3, 1, "mse", 3.0),
        (3, 1, "peaks", None),
        (2, 0, "mse", 4.0),
    ]
    numbers = pd.DataFrame(rows, columns=COLUMNS)

    summary = summarize(numbers, ["depth", "score"], find_limits)

    # One seed has no peaks: there is no mean, and n says why.
    low, high = compute_interval([1.0, 3.0], POSITIVE)
    columns = ["depth", "score", "mean", "sd", "low", "high", "n"]
    assert summary[columns].to_numpy().tolist() == [
        [3, "mse", 2.0, 2**0.5, low, high, 2],
        [3, "peaks", None, None, None, None, 1],
        [2, "mse", 4.0, None, None, None, 1],
    ]


def make_pair_table() -> pd.DataFrame:
    """Two depths, which share the seeds 0, 1 and 2."""
    rows = [
        (2, 0, 1.0),
        (2, 1, 2.0),
        (2, 2, 4.0),
        (2, 5, 9.0),
        (3, 2, 1.0),
        (3, 1, 1.0),
        (3, 0, 0.5),
        (3, 7, 9.0),
    ]
    columns = ["depth", "seed", "value"]
    table = pd.DataFrame(rows, columns=columns, dtype=object)
    return table.assign(score="ood_mse")


def test_pairs_by_hand():
    pairs = compare_settings(make_pair_table(), ["depth"])

    differences = [-0.5, -1.0, -3.0]
    low, high = compute_student(differences)
    logs = np.log([1 / 2, 1 / 2, 1 / 4])
    ratio_low, ratio_high = np.exp(compute_student(logs))
    p = stats.ttest_1samp(differences, 0).pvalue
    expected = {
        "depth_a": 2,
        "depth_b": 3,
        "difference": -1.5,
        "sd": np.std(differences, ddof=1),
        "low": low,
        "high": high,
        "n": 3,
        "p": p,
        "p_holm": p,
        "ratio": math.exp(logs.mean()),
        "ratio_low": ratio_low,
        "ratio_high": ratio_high,
    }
    (row,) = pairs.to_dict("records")
    assert row.pop("score") == "ood_mse"
    assert row == approx(expected)
    assert list(row) == list(expected)


def test_differences_of_no_spread_have_no_test():
    table = make_pair_table()
    table["value"] = table["depth"].astype(float)

    pair = compare_settings(table, ["depth"]).iloc[0]

    assert pair["difference"] == 1
    assert pair["n"] == 3
    assert pair[["low", "p", "p_holm"]].isna().all()


@pytest.mark.parametrize(
    "pairs, expected",
    [
        ("first", [[1, 2], [1, 3]]),
        (
            "all",
            [
                [1, 2],
                [1, 3],
                [2, 3],
            ],
        ),
    ],
)
def test_compared_settings(pairs, expected):
    rows = [(depth, 0, "mse", 1.0) for depth in (1, 2, 3)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    compared = compare_settings(table, ["depth"], pairs)
    assert compared[["depth_a", "depth_b"]].to_numpy().tolist() == expected


@pytest.mark.parametrize(
    "p_values, adjusted",
    [
        # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to 0.06), 0.5 x 1.
        ([0.03, None, 0.5, 0.01, 0.02], [0.06, None, 0.5, 0.04, 0.06]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values, adjusted):
    assert adjust_by_holm(p_values) == approx(adjusted)


def test_flags_that_follow_from_others_are_left_out():
    settings = []
    for code, epochs in (("bump", 50), ("ramp", 100)):
        for depth in (2, 3):
            setting = {
                "encoding": code,
                "epochs": epochs,
                "width": 8,
                "depth": depth,
            }
            settings.append(setting)

    flags = choose_flags(settings)

    labels = [make_label(setting, flags) for setting in settings]
    assert flags == ["encoding", "depth"]
    assert labels[0] == "encoding bump, depth 2"
    assert len(set(labels)) == 4


def test_a_flag_is_named_though_others_together_tell_it():
    """Estimates one row of a table with many small changes."""
    settings = [
        {"sigma": 3, "noise": 0.0, "encoding": "one_hot"},
        {"sigma": 1, "noise": 0.0, "encoding": "bump"},
        {"sigma": 1, "noise": 0.1, "encoding": "one_hot"},
    ]
    assert choose_flags(settings) == ["sigma", "noise", "encoding"]


@pytest.mark.parametrize(
    "setting, label",
    [
        ({}, "all"),
        ({"rate": 0.0}, "rate 0"),
        # No two settings have one label.
        ({"rate": 0.12345678}, "rate 0.12345678"),
    ],
)
def test_labels(setting, label):
    assert choose_flags([setting]) == []
    assert make_label(setting, list(setting)) == label


def test_a_region_of_two_parts_is_one_cell():
    text = format_rows([["region", "n"], ["corner:3|x:1", 2]])
    assert text.splitlines()[-1] == r"| corner:3\|x:1 | 2 |"


def test_exact_power_laws():
    counts = 0.5 * np.array(SIZES) ** 3
    cubes = average_sizes(SIZES, counts)

    law = fit_power_law(cubes)
    few = {size: cubes[size] for size in SIZES[:2]}
    of_two = fit_power_law(few)

    assert law.constant == approx(0.5)
    assert [law.slope, law.low, law.high] == approx([3, 3, 3])
    assert of_two.slope == approx(3)
    assert of_two.low is None
    assert fit_power_law({16: cubes[16]}) is None


def test_slope_and_interval_against_linregress(rng):
    sizes = np.repeat(SIZES, 3)
    logs = 2 * np.log(sizes) + rng.normal(0, 0.2, len(sizes))

    law = fit_power_law(average_sizes(sizes, np.exp(logs)))

    means = logs.reshape(-1, 3).mean(axis=1)
    line = stats.linregress(np.log(SIZES), means)
    half_width = stats.t.ppf(0.975, 3) * line.stderr
    ends = [line.slope - half_width, line.slope + half_width]
    assert [law.low, law.high] == approx(ends)


def test_mean_of_a_size_and_its_interval():
    means = average_sizes([20, 10, 20], [8.0, 5.0, 2.0])

    assert list(means) == [10, 20]
    assert means[10] == Statistics(approx(5.0), None, None, None, 1)
    low, high = compute_student(np.log([8.0, 2.0]))
    low = approx(math.exp(low))
    high = approx(math.exp(high))
    assert means[20] == Statistics(approx(4.0), None, low, high, 2)
