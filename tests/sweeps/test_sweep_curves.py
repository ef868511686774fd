"""Curves over seeds: mean, interval, and a bounded number of points."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps import sweep_exhibits
from tfcomp.sweeps.sweep_exhibits import choose_points, summarize_curves
from tfcomp.training.history import History


def test_rows_of_a_curve(tmp_path: Path) -> None:
    trials = []
    for seed, losses in enumerate([{1: 4.0, 2: 1.0}, {2: 3.0}, {}]):
        folder = tmp_path / str(seed)
        folder.mkdir()
        trials.append(SimpleNamespace(setting={"depth": 3}, path=folder))
        for epoch, loss in losses.items():
            History(folder).add(epoch, {"train/loss": loss, "id/mse": 9.0})
    found = summarize_curves(trials)
    low, high = compute_interval([1.0, 3.0])
    expected = [
        [3, "train/loss", 1, 4.0, None, None, None, 1],
        [3, "train/loss", 2, 2.0, 2**0.5, low, high, 2],
    ]
    assert found.to_numpy().tolist() == expected
    columns = ["depth", "quantity", "epoch", "mean", "sd", "low", "high", "n"]
    assert list(found.columns) == columns
    # A trial of before has no history; alone, it has no curves.
    pd.testing.assert_frame_equal(summarize_curves(trials[:2]), found)
    assert summarize_curves(trials[2:]).empty


@pytest.mark.parametrize("count", [1, 200, 201, 1000])
def test_long_curves_are_thinned(count: int) -> None:
    chosen = choose_points(count, 200)
    assert len(set(chosen)) == min(count, 200)
    assert (chosen[0], chosen[-1]) == (0, count - 1)
    if count > 200:
        assert np.diff(chosen).max() <= count / 200 + 1


def test_curves_of_many_trials_have_fewer_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_exhibits, "_MAX_ROWS", 30)
    for epoch in range(100):
        History(tmp_path).add(epoch, {"train/loss": 1.0})
    trial = SimpleNamespace(setting={"depth": 3}, path=tmp_path)
    assert len(summarize_curves([trial])) == 30
    assert len(summarize_curves([trial] * 2)) == 15
    assert len(summarize_curves([trial] * 30)) == 10
