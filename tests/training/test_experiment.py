"""One run end to end: files, contents, determinism, refusals."""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from pytest import approx

import tfcomp
from tfcomp.config.errors import ConfigError, DivergedError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.models.loading import load_run
from tfcomp.storage.run_folder import read_history, read_metrics
from tfcomp.training.experiment import train_and_evaluate

pytestmark = pytest.mark.usefixtures("untraced")

KEYS = (
    "id ood layers train points coverage certificate references r2 reference "
    "untrained explained weights_hash"
)
SCORES = (
    "mse relative_mse r2 hit_rate position_accuracy position_error num_peaks"
)
STAGE_NUMBERS = (
    "factorization cosine_factorization log_volume_id log_volume_ood "
    "probe_r2_id probe_r2_ood"
)
STAGES = ["code", "stage_0", "stage_1", "stage_2", "image"]
SMALL = ("--model=mlp", "--depth=1", "--width=4", "--steps_per_epoch=1")


def test_metrics_have_the_agreed_keys(smoke_run):
    metrics = read_metrics(Path(smoke_run.run_dir))

    assert set(metrics) == set(KEYS.split())
    for subset in ("id", "ood"):
        assert set(metrics[subset]) == set(SCORES.split())
    assert list(metrics["layers"]) == STAGES
    for numbers in metrics["layers"].values():
        assert set(STAGE_NUMBERS.split()) <= set(numbers)
    cost = {"epochs", "examples_per_second", "seconds", "weights"}
    assert set(metrics["train"]) == cost
    untrained = metrics["untrained"]["id"]
    assert metrics["id"]["relative_mse"] < 0.5 * untrained
    assert metrics.pop("reference") == "blank 1"
    assert int(metrics.pop("weights_hash"), 16)
    for number in keras.tree.flatten(metrics):
        assert number is None or math.isfinite(number)


def test_divergence_is_named(make_smoke):
    flags = ("--learning_rate=1e30", "--eval_every=0", *SMALL)
    with pytest.raises(DivergedError, match="learning_rate"):
        train_and_evaluate(make_smoke(*flags))


def test_one_hot_code_without_a_region(make_smoke):
    """Geometry is finite, and there are no OOD scores."""
    flags = ("--region=none", "--num_train=30", "--encoding=one_hot")
    metrics = train_and_evaluate(make_smoke(*flags, *SMALL, "--epochs=1"))

    assert set(metrics["ood"].values()) == {None}
    assert metrics["id_test"]["mse"] > 0
    assert metrics["layers"]["image"]["log_volume_ood"] is None
    # Neighbouring codes differ in two units by a half each way: g_xx = 1/2
    # inside; at the border the one-sided difference gives 2. No mixed term.
    code = metrics["layers"]["code"]
    assert code["factorization"] == 1.0
    expected = -8 / 12 * math.log(2)  # 10 inside, 2 at the border
    assert code["log_volume_id"] == approx(expected, rel=1e-5)


def test_lost_files_are_made_again(smoke_run, tmp_path):
    """By `--resume`, from the last checkpoint, with its time of training."""
    shutil.copytree(smoke_run.log_dir, tmp_path / "logs")
    config = dataclasses.replace(
        smoke_run,
        log_dir=f"{tmp_path}/logs",
        export_dir=f"{tmp_path}/models",
        resume=True,
        pictures=False,
        export=False,
    )
    folder = Path(config.run_dir)
    (folder / "model.keras").write_bytes(b"PK")
    (folder / "metrics.json").write_text("{}")
    partial = folder / "checkpoints/.partial-1.csv"  # of a killed process
    partial.touch()

    train_and_evaluate(config)

    assert not partial.exists()
    repaired = load_run(folder)
    original = load_run(smoke_run.run_dir)
    weights = repaired.model.get_weights()
    expected = original.model.get_weights()
    np.testing.assert_equal(weights, expected)
    assert repaired.metrics == original.metrics


def test_too_many_replicas(make_smoke, tmp_path):
    """Devices are divided first, before metrics are tried on images."""
    tfcomp.register_metric("mine", per="image")(lambda data: None)
    config = make_smoke("--num_replicas=1024", "--batch_size=1024")

    with pytest.raises(ConfigError, match="num_replicas"):
        train_and_evaluate(config)

    assert not list(tmp_path.iterdir())


class Recorder(keras.callbacks.Callback):
    """Keeps all that it is told."""

    def __init__(self, config: RunConfig):
        super().__init__()
        self.config = config
        self.epochs: list[dict] = []
        self.metrics: list[dict] = []

    def on_epoch_end(self, epoch: int, logs: dict | None = None):
        self.epochs.append(dict(logs))

    def on_run_end(self, metrics: dict):
        self.metrics.append(metrics)


def test_callbacks_see_losses_scores_and_the_end(make_smoke):
    recorders: list[Recorder] = []

    @tfcomp.register_callback("recorder")
    def make_recorder(config: RunConfig) -> Recorder:
        recorders.append(Recorder(config))
        return recorders[-1]

    # A callback without `on_run_end` is another one.
    tfcomp.register_callback("plain")(lambda _: keras.callbacks.Callback())
    config = make_smoke("--epochs=3", "--eval_every=2", *SMALL)

    metrics = train_and_evaluate(config)

    (recorder,) = recorders
    assert recorder.config == config
    assert all(logs["loss"] > 0 for logs in recorder.epochs)
    # The last epoch is scored after training, as `on_run_end` is told.
    is_scored = ["ood/mse" in logs for logs in recorder.epochs]
    assert is_scored == [False, True, False]
    row = read_history(Path(config.run_dir, "history.csv"))[2]
    assert row["ood/mse"] == approx(recorder.epochs[1]["ood/mse"], rel=1e-5)
    (end,) = recorder.metrics
    assert end["ood"] == metrics["ood"]

    assert train_and_evaluate(config) == json.loads(json.dumps(metrics))
    assert len(recorders) == 1  # a finished run trains nothing


STOPPING = keras.callbacks.EarlyStopping(
    "loss",
    patience=0,
    mode="max",
)


@pytest.mark.parametrize(
    ("callback", "error", "word"),
    [
        (STOPPING, ConfigError, "epochs must be 2"),
        (print, RunError, "'wrong'"),  # no callback
    ],
)
def test_callbacks_that_cannot_be_used(callback, error, word, make_smoke):
    tfcomp.register_callback("wrong")(lambda config: callback)
    config = make_smoke("--epochs=9", *SMALL)

    with pytest.raises(error, match=word):
        train_and_evaluate(config)

    assert not Path(config.run_dir, "metrics.json").exists()
