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
from tfcomp.training import experiment, fit
from tfcomp.training.experiment import derive_seed, train_and_evaluate
from tfcomp.training.monitor import History

pytestmark = pytest.mark.usefixtures("untraced")

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
MISSED = (*FLAGS, "--id_target=1e-9", "--restarts=2")


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


@pytest.fixture
def diverging(monkeypatch) -> list[bool]:
    """Whether the loss diverges in epochs to come, from the last one on.

    Until it first does, epochs have a number that later attempts lack.
    """
    epochs: list[bool] = []
    own = {"id/own": 1.0}
    add = History.add

    def check_loss(*_: object):
        if epochs and epochs.pop():
            own.clear()
            raise DivergedError("training diverged")

    monkeypatch.setattr(fit, "_check_loss", check_loss)
    monkeypatch.setattr(
        History, "add", lambda self, e, scores: add(self, e, scores | own)
    )
    return epochs


def test_restarts(make_smoke, copies, diverging, capsys):
    """The best attempt is kept; killed in the last, a run ends the same."""
    diverging += [True, False]  # the first attempt, in its second epoch
    weights, metrics, curves = run(make_smoke(*MISSED))
    assert "restart 2 of at most 2" in capsys.readouterr().err
    assert len(copies) == 5  # the last one in the second epoch
    killed = f"--run_name={copies[-1]}"
    resumed = run(make_smoke(*MISSED, "--resume", killed))
    check_equal(weights, resumed[0])
    assert (metrics, curves) == resumed[1:]

    failed, *attempts = metrics["train"]["attempts"]
    assert failed == {"seed": 0, "id_relative_mse": None, "decided": False}
    seeds = [attempt["seed"] for attempt in attempts]
    assert seeds == [derive_seed(0, 1), derive_seed(0, 2)]
    best = min(attempts, key=lambda a: a["id_relative_mse"])
    seed = best["seed"]
    assert metrics["train"]["seed"] == seed
    assert metrics["id"]["relative_mse"] == best["id_relative_mse"]

    # The same as a run of that seed by itself.
    alone = run(make_smoke(*FLAGS, f"--seed={seed}", "--run_name=alone"))
    check_equal(weights, alone[0])
    del metrics["train"], alone[1]["train"]
    assert (metrics, curves) == alone[1:]  # also before training


def test_no_attempt_is_left(make_smoke, monkeypatch):
    def diverge(*_: object):
        raise DivergedError("training diverged")

    monkeypatch.setattr(experiment, "fit_model", diverge)
    with pytest.raises(DivergedError):
        train_and_evaluate(make_smoke(*MISSED))


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
