"""Curves over seeds: mean, interval, and a bounded number of points."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.sweeps.sweep_numbers import compute_numbers
from tfcomp.training.monitor import History


def write_trial(folder: Path, losses: dict[int, float]) -> Any:
    """A finished trial, with a history if it has losses."""
    folder.mkdir(parents=True)
    (folder / "run.flags").write_text("--depth=3\n")
    scores = {"id": {"mse": 1.0}, "ood": {"mse": 1.0}}
    (folder / "metrics.json").write_text(json.dumps(scores))
    for epoch, loss in losses.items():
        History(folder).add(epoch, {"train/loss": loss, "id/mse": 9.0})
    return SimpleNamespace(
        setting={"depth": 3}, seed=0, path=folder, name="t", config=RunConfig()
    )


def summarize_curves(trials: list[Any]) -> pd.DataFrame:
    settings = SimpleNamespace(pairs="first")
    return compute_numbers("s", trials, cast(Any, settings)).curves


def test_rows_of_a_curve(tmp_path: Path) -> None:
    trials = [
        write_trial(tmp_path / str(seed), losses)
        for seed, losses in enumerate([{1: 4.0, 2: 1.0}, {2: 3.0}, {}])
    ]
    found = summarize_curves(trials)
    low, high = compute_interval([1.0, 3.0])
    expected = [
        [3, "train/loss", 1, 4.0, None, None, None, 1],
        [3, "train/loss", 2, 2.0, 2**0.5, low, high, 2],
    ]
    assert found.to_numpy().tolist() == expected
    columns = ["depth", "quantity", "epoch", "mean", "sd", "low", "high", "n"]
    assert list(found.columns) == columns
    # A trial of an older version has no history.
    pd.testing.assert_frame_equal(summarize_curves(trials[:2]), found)
    assert summarize_curves(trials[2:]).empty


@pytest.mark.parametrize("count", [1, 200, 201, 600])
def test_long_curves_are_thinned(count: int, tmp_path: Path) -> None:
    trial = write_trial(tmp_path / "t", {})
    lines = [f"{epoch},1.0\n" for epoch in range(count)]
    history = "".join(["epoch,train/loss\n", *lines])
    (trial.path / "history.csv").write_text(history)
    chosen = summarize_curves([trial])["epoch"].tolist()
    assert len(chosen) == min(count, 200)
    assert (chosen[0], chosen[-1]) == (0, count - 1)
    if count > 200:
        assert np.diff(chosen).max() <= count / 200 + 1
