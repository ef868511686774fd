"""Trainings that miss their ID target start again; kills change nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.training import prepared_models
from tfcomp.training.experiment import train_and_evaluate
from tfcomp.training.monitor import Monitor
from tfcomp.training.restarts import derive_seed

FLAGS = ("--epochs=2", "--steps_per_epoch=4", "--checkpoint_seconds=0")
MISSED = (*FLAGS, "--id_target=1e-9", "--restarts=2")
Smoke = Callable[..., RunConfig]


def run(config: RunConfig) -> tuple[list[np.ndarray], dict, str]:
    """Weights, metrics without times, and curves."""
    prepared_models._kept.clear()
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
    weights, metrics, curves = run(make_smoke(*MISSED, "--run_name=again"))
    attempts = metrics["train"]["attempts"]
    seeds = [derive_seed(0, number) for number in range(3)]
    assert [a["seed"] for a in attempts] == seeds
    assert len(set(seeds)) == 3
    best = min(attempts, key=lambda a: a["id_relative_mse"])
    assert metrics["train"]["seed"] == best["seed"]
    assert metrics["id"]["relative_mse"] == best["id_relative_mse"]
    assert "restart 2 of at most 2" in capsys.readouterr().err
    # The same as a run of that seed by itself: it has the same examples.
    alone = run(make_smoke(*FLAGS, f"--seed={best['seed']}"))
    for one, other in zip(weights, alone[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert curves == alone[2]
    assert alone[1]["train"] == {"epochs": 2}


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_resumed_restarts_end_the_same(
    stop: int, make_smoke: Smoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(make_smoke(*MISSED, "--run_name=whole"))
    flags = (*MISSED, "--run_name=cut")
    calls = []
    on_epoch_end = Monitor.on_epoch_end

    def interrupt(self: Monitor, epoch: int, logs: dict | None = None) -> None:
        calls.append(epoch)
        if len(calls) > stop:
            raise KeyboardInterrupt
        on_epoch_end(self, epoch, logs)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Monitor, "on_epoch_end", interrupt)
        run(make_smoke(*flags))
    weights, metrics, curves = run(make_smoke(*flags, "--resume"))
    for one, other in zip(weights, whole[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert (metrics, curves) == whole[1:]


def test_a_training_that_is_good_enough_is_the_only_one(
    make_smoke: Smoke,
) -> None:
    config = make_smoke(*FLAGS, "--id_target=100")
    assert len(run(config)[1]["train"]["attempts"]) == 1


def test_flags_are_those_of_the_first(make_smoke: Smoke) -> None:
    config = make_smoke(*MISSED)
    run(config)
    flags = parse_config([f"--flagfile={config.run_dir}/run.flags"])
    assert flags.identity() == config.identity()
