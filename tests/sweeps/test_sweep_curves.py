"""Curves over seeds: mean, interval, and a bounded number of points."""

from __future__ import annotations

import numpy as np
import pytest

from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps.sweep_curves import choose_epochs
from tfcomp.sweeps.sweep_curves import tabulate_curves


def test_rows_of_a_curve() -> None:
    curves = {"train/loss": {2: [1.0, 3.0], 1: [4.0]}}
    rows = tabulate_curves(["depth"], {(3,): curves})
    assert [(r["depth"], r["quantity"], r["epoch"]) for r in rows] == [
        (3, "train/loss", 1),
        (3, "train/loss", 2),
    ]
    assert rows[0] | {"n": 1, "mean": 4.0, "low": None, "high": None} == rows[0]
    low, high = compute_interval([1.0, 3.0])
    assert rows[1] | {"n": 2, "mean": 2.0, "low": low, "high": high} == rows[1]


@pytest.mark.parametrize("count", [1, 200, 201, 1000])
def test_long_curves_are_thinned(count: int) -> None:
    epochs = list(range(1, count + 1))
    chosen = choose_epochs(epochs)
    assert len(chosen) == min(count, 200)
    assert (chosen[0], chosen[-1]) == (1, count)
    assert len(set(chosen)) == len(chosen)
    if count > 200:
        assert np.diff(chosen).max() <= count / 200 + 1
