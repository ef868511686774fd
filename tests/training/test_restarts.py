"""Trainings that miss their ID target start again; kills change nothing."""

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError, DivergedError
from tfcomp.config.run_config import RunConfig
from tfcomp.storage.run_folder import read_metrics
from tfcomp.training import fit
from tfcomp.training.experiment import derive_seed, train_and_evaluate
from tfcomp.training.monitor import History

FLAGS = (
    "--epochs=2",
    "--steps_per_epoch=1",
    "--checkpoint_seconds=0",
    "--model=mlp",
    "--width=4",
    "--depth=1",
    "--eval_every=0",
    "--grid_size=6",
    "--region=square:2-3",
)
MISSED = (*FLAGS, "--id_target=1e-9", "--restarts=1")


def run(config: RunConfig) -> tuple[list[np.ndarray], dict, str]:
    """Weights, metrics without times, and curves."""
    train_and_evaluate(config)
    folder = Path(config.run_dir)
    metrics = read_metrics(folder)
    for name in ("seconds", "examples_per_second"):
        assert metrics["train"].pop(name) > 0
    model = keras.models.load_model(folder / "model.keras")
    curves = (folder / "history.csv").read_text()
    return model.get_weights(), metrics, curves


@pytest.fixture
def copies(tmp_path) -> list[str]:
    """Names of what kills in epochs of a test would leave of their runs."""
    names: list[str] = []

    @tfcomp.register_callback("copies")
    def make_copier(config: RunConfig) -> keras.callbacks.Callback:
        def copy(*_: object):
            name = f"copy_{len(names)}"
            shutil.copytree(config.run_dir, Path(config.log_dir) / name)
            names.append(name)

        return keras.callbacks.LambdaCallback(on_epoch_end=copy)

    return names


def test_restarts(make_smoke, copies, capsys):
    """The best attempt is kept; killed in each of them, a run ends the same."""
    weights, metrics, curves = run(make_smoke(*MISSED))
    assert len(copies) == 4
    for name in (copies[1], copies[3]):  # in the second epoch of an attempt
        resumed = run(make_smoke(*MISSED, "--resume", f"--run_name={name}"))
        check_equal(weights, resumed[0])
        assert (metrics, curves) == resumed[1:]

    attempts = metrics["train"]["attempts"]
    seeds = [attempt["seed"] for attempt in attempts]
    assert seeds == [0, derive_seed(0, 1)]
    best = min(attempts, key=lambda a: a["id_relative_mse"])
    assert metrics["train"]["seed"] == best["seed"]
    assert metrics["id"]["relative_mse"] == best["id_relative_mse"]
    assert "restart 1 of at most 1" in capsys.readouterr().err


def test_a_diverged_attempt_has_failed(make_smoke, copies, monkeypatch):
    """Also if the next one is killed; numbers that it lacks stay absent."""
    diverging = [True, False]
    own = {"id/own": 1.0}
    add = History.add

    def check_loss(*_: object):
        if diverging and diverging.pop():
            own.clear()
            raise DivergedError("training diverged")

    monkeypatch.setattr(fit, "_check_loss", check_loss)
    monkeypatch.setattr(
        History, "add", lambda self, e, scores: add(self, e, scores | own)
    )
    weights, metrics, curves = run(make_smoke(*MISSED))
    failed, _ = metrics["train"]["attempts"]
    assert failed == {
        "seed": 0,
        "id_relative_mse": None,
        "decided": False,
    }
    killed = f"--run_name={copies[-1]}"
    resumed = run(make_smoke(*MISSED, "--resume", killed))
    check_equal(weights, resumed[0])
    assert (metrics, curves) == resumed[1:]

    diverging += [True, False, True]  # one after an epoch
    with pytest.raises(DivergedError):
        run(make_smoke(*MISSED, "--run_name=both"))

    # The same as a run of that seed by itself.
    seed = derive_seed(0, 1)
    alone = run(make_smoke(*FLAGS, f"--seed={seed}", "--run_name=alone"))
    check_equal(weights, alone[0])
    del metrics["train"], alone[1]["train"]
    assert (metrics, curves) == alone[1:]  # also before training


def test_no_target_without_a_unit(make_smoke, tmp_path):
    """All ID images are equal, so relative errors do not exist."""
    images = np.zeros((4, 8, 8))
    images[3] = 1.0
    classes = np.indices((2, 2)).reshape(2, -1).T
    np.savez(
        tmp_path / "equal.npz",
        images=images,
        classes=classes,
    )
    data = ("--dataset=table", f"--data={tmp_path}/equal.npz")
    region = "--region=factor_0:#1,factor_1:#1"

    with pytest.raises(ConfigError, match="id_target"):
        train_and_evaluate(make_smoke(*MISSED, *data, region))


def check_equal(first: list[np.ndarray], second: list[np.ndarray]):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
