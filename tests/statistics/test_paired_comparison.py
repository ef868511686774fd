"""Paired differences, against hand calculations."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tfcomp.statistics.seed_statistics import adjust_by_holm, compare_settings


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


def test_holm_by_hand() -> None:
    # Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2 (raised to the one before), 0.5 x 1.
    found = adjust_by_holm([0.03, None, 0.5, 0.01, 0.02])
    assert found == pytest.approx([0.06, None, 0.5, 0.04, 0.06])
    assert adjust_by_holm([0.6, 0.7]) == [1.0, 1.0]
    assert adjust_by_holm([]) == []
