"""Paired differences, against hand calculations."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tfcomp.statistics import seed_tests
from tfcomp.statistics.seed_tests import adjust_by_holm, compare_settings


def compare(
    settings: dict[int, dict[int, float]],
    score: str = "ood_mse",
    pairs: str = "first",
) -> list[dict[str, Any]]:
    """Compares depths, of which the numbers are given by seed."""
    rows = [
        {"depth": depth, "seed": seed, "score": score, "value": value}
        for depth, values in settings.items()
        for seed, value in values.items()
    ]
    table = pd.DataFrame(rows, dtype=object)
    found = compare_settings(table, ["depth"], pairs=pairs)
    return found.to_dict("records")


def test_pairs_by_hand() -> None:
    a = {0: 1.0, 1: 2.0, 2: 4.0, 5: 9.0}
    b = {2: 1.0, 1: 1.0, 0: 0.5, 7: 9.0}
    (row,) = compare({2: a, 3: b})
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


def test_pairing_removes_what_seeds_share(rng: np.random.Generator) -> None:
    shared = rng.normal(size=5) * 100
    a = dict(enumerate(shared))
    b = dict(enumerate(shared + 1 + 0.1 * rng.random(5)))
    (row,) = compare({2: a, 3: b})
    assert 1 < row["low"] < row["high"] < 1.1


def test_pairs_that_tell_little() -> None:
    settings = {2: {0: 1.0}, 3: {0: 3.0, 1: 4.0}, 4: {8: 1.0, 9: 1.0}}
    rows = compare(settings | {5: {0: 3.5, 1: 4.5}}, pairs="all")
    found = {(r["depth_a"], r["depth_b"]): r for r in rows}
    assert len(rows) == 6
    single = found[2, 3]
    assert (single["difference"], single["n"], single["p"]) == (2.0, 1, None)
    assert single["low"] is None
    assert single["ratio"] == pytest.approx(3.0)
    none = found[3, 4]
    assert (none["difference"], none["n"], none["ratio"]) == (None, 0, None)
    constant = found[3, 5]  # in all seeds: as certain as a test can be
    assert constant["low"] is constant["high"] is None
    assert constant["p"] == constant["p_holm"] == 0


@pytest.mark.parametrize(
    ("pairs", "count"), [("first", 79), ("all", 79 * 80 // 2)]
)
def test_rows_grow_with_the_square_only_if_asked(
    pairs: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seed_tests, "_compare", lambda *_: {"p": None})
    rows = compare({d: {0: 1.0} for d in range(80)}, pairs=pairs)
    assert len(rows) == count
    first = [row for row in rows if row["depth_a"] == 0]
    assert [row["depth_b"] for row in first] == list(range(1, 80))


def test_no_difference_at_all() -> None:
    (row,) = compare({depth: {0: 1.0, 1: 2.0} for depth in (2, 3)})
    assert row["difference"] == 0 and row["p"] == row["p_holm"] == 1


@pytest.mark.parametrize(
    ("score", "values"),
    [("ood_position_accuracy", (0.5, 1.0)), ("ood_mse", (0.0, 1.0))],
)
def test_only_positive_errors_have_a_ratio(
    score: str, values: tuple[float, float]
) -> None:
    (row,) = compare({d: dict(enumerate(values)) for d in (2, 3)}, score)
    assert row["ratio"] is None


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to the one before), 0.5 x 1.
    found = adjust_by_holm([0.03, None, 0.5, 0.01, 0.02])
    assert found == pytest.approx([0.06, None, 0.5, 0.04, 0.06])
    assert adjust_by_holm([0.6, 0.7]) == [1.0, 1.0]
    assert adjust_by_holm([]) == []


def test_holm_adjusts_within_a_score(rng: np.random.Generator) -> None:
    rows = [
        {"depth": depth, "seed": seed, "score": score, "value": rng.random()}
        for score in "ab"
        for depth in (2, 3, 4)
        for seed in range(3)
    ]
    found = compare_settings(pd.DataFrame(rows), ["depth"], pairs="all")
    assert len(found) == 6
    for _, family in found.groupby("score"):
        expected = min(1, 3 * family["p"].min())
        assert family["p_holm"].min() == pytest.approx(expected)
