"""Trainings that miss their ID target start again; kills change nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.training.experiment import train_and_evaluate
from tfcomp.training.monitor import Monitor
from tfcomp.training.restarts import derive_seed

FLAGS = ("--epochs=2", "--steps_per_epoch=4", "--checkpoint_seconds=0")
MISSED = (*FLAGS, "--id_target=1e-9", "--restarts=1")
Smoke = Callable[..., RunConfig]


def run(config: RunConfig) -> tuple[list[np.ndarray], dict, str]:
    """Weights, metrics without times, and curves."""
    train_and_evaluate(config)
    folder = Path(config.run_dir)
    metrics = json.loads((folder / "metrics.json").read_text())
    for name in ("seconds", "examples_per_second"):
        assert metrics["train"].pop(name) > 0
    model = keras.models.load_model(folder / "model.keras")
    curves = (folder / "history.csv").read_text()
    return model.get_weights(), metrics, curves


def test_the_best_is_kept_and_recorded(
    make_smoke: Smoke, capsys: pytest.CaptureFixture
) -> None:
    weights, metrics, curves = run(make_smoke(*MISSED))
    attempts = metrics["train"]["attempts"]
    seeds = [derive_seed(0, number) for number in range(2)]
    assert [a["seed"] for a in attempts] == seeds
    assert len(set(seeds)) == 2
    best = min(attempts, key=lambda a: a["id_relative_mse"])
    assert metrics["train"]["seed"] == best["seed"]
    assert metrics["id"]["relative_mse"] == best["id_relative_mse"]
    assert "restart 1 of at most 1" in capsys.readouterr().err
    # The same as a run of that seed by itself, which is good enough here.
    flags = (f"--seed={best['seed']}", "--id_target=100", "--run_name=alone")
    alone = run(make_smoke(*FLAGS, *flags))
    for one, other in zip(weights, alone[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert curves == alone[2]
    assert alone[1]["train"]["attempts"] == [best]


def test_resumed_restarts_end_the_same(
    make_smoke: Smoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the first training, right after it, and in the second."""
    whole = run(make_smoke(*MISSED, "--run_name=whole"))
    on_epoch_end = Monitor.on_epoch_end
    left = []

    def interrupt(self: Monitor, epoch: int, logs: dict | None = None) -> None:
        if not left:
            raise KeyboardInterrupt
        on_epoch_end(self, epoch, left.pop() and logs)

    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "on_epoch_end", interrupt)
        for _ in range(3):  # an epoch in each session
            left.append(True)
            with pytest.raises(KeyboardInterrupt):
                run(make_smoke(*MISSED, "--resume"))
    weights, metrics, curves = run(make_smoke(*MISSED, "--resume"))
    for one, other in zip(weights, whole[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert (metrics, curves) == whole[1:]
