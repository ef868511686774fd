"""One run end to end: files, contents, determinism, refusals."""

import dataclasses
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError, DivergedError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.models.loading import load_model, load_run
from tfcomp.storage.run_folder import read_history, read_metrics
from tfcomp.training.experiment import train_and_evaluate

KEYS = (
    "id ood layers train points coverage certificate references r2 reference "
    "untrained explained"
)
SCORES = (
    "mse relative_mse r2 hit_rate position_accuracy position_error num_peaks"
)
LAYER_NUMBERS = (
    "factorization cosine_factorization log_volume_id log_volume_ood "
    "probe_r2_id probe_r2_ood"
)

SMALL = ("--model=mlp", "--depth=1", "--width=4")
Smoke = Callable[..., RunConfig]


def test_metrics_have_the_agreed_keys(smoke_run) -> None:
    metrics = read_metrics(Path(smoke_run.run_dir))
    assert set(metrics) == set(KEYS.split())
    assert set(metrics["id"]) == set(metrics["ood"]) == set(SCORES.split())
    stages = ["code", "stage_0", "stage_1", "stage_2", "image"]
    assert list(metrics["layers"]) == stages
    for numbers in metrics["layers"].values():
        assert set(LAYER_NUMBERS.split()) <= set(numbers)
    cost = {"epochs", "examples_per_second", "seconds", "weights"}
    assert set(metrics["train"]) == cost
    assert metrics.pop("reference") == "blank 1"
    values = [n for n in keras.tree.flatten(metrics) if n is not None]
    assert all(type(v) in (int, float) and math.isfinite(v) for v in values)


def test_scores_are_those_of_the_saved_model(smoke_run) -> None:
    dataset = make_dataset(smoke_run)
    model = load_model(Path(smoke_run.run_dir, "model.keras"))
    images = model.predict(dataset.splits.grid, verbose=0)
    truth = dataset.render_array(dataset.splits.grid)
    error = np.mean((images - truth) ** 2, axis=(1, 2, 3))
    metrics = read_metrics(Path(smoke_run.run_dir))
    ood = dataset.splits.is_ood
    assert metrics["ood"]["mse"] == pytest.approx(error[ood].mean(), rel=1e-5)
    assert metrics["id"]["mse"] == pytest.approx(error[~ood].mean(), rel=1e-5)
    untrained = metrics["untrained"]["id"]
    assert metrics["id"]["relative_mse"] < 0.5 * untrained


def test_divergence_is_named(make_smoke) -> None:
    with pytest.raises(DivergedError, match="learning_rate"):
        train_and_evaluate(make_smoke("--learning_rate=1e30", *SMALL))


def test_one_hot_code_without_a_region(make_smoke) -> None:
    """Geometry is finite, and there are no OOD scores."""
    flags = ("--region=none", "--num_train=30", "--encoding=one_hot")
    metrics = train_and_evaluate(make_smoke(*flags, *SMALL))
    assert set(metrics["ood"].values()) == {None}
    assert metrics["id_test"]["mse"] > 0
    assert metrics["layers"]["image"]["log_volume_ood"] is None
    # Neighbouring codes differ in two units by a half each way: g_xx = 1/2
    # inside; at the border the one-sided difference gives 2. No mixed term.
    code = metrics["layers"]["code"]
    assert code["factorization"] == 1.0
    expected = (10 * math.log(0.5) + 2 * math.log(2.0)) / 12
    assert code["log_volume_id"] == pytest.approx(expected, rel=1e-5)


def test_lost_files_are_made_again(smoke_run, tmp_path) -> None:
    """By `--resume`, from the last checkpoint, with its time of training."""
    shutil.copytree(smoke_run.log_dir, tmp_path / "logs")
    places = {"log_dir": f"{tmp_path}/logs", "export_dir": f"{tmp_path}/models"}
    copy = dataclasses.replace(
        smoke_run, **places, resume=True, pictures=False, export=False
    )
    run = Path(copy.run_dir)
    (run / "model.keras").write_bytes(b"PK")
    (run / "metrics.json").write_text("{}")
    (run / "checkpoints" / ".partial-1.csv").touch()  # of a killed process
    train_and_evaluate(copy)
    assert not [*run.rglob(".partial*")]
    repaired = load_run(run)
    original = load_run(smoke_run.run_dir)
    weights = zip(
        repaired.model.get_weights(), original.model.get_weights(), strict=True
    )
    for first, second in weights:
        np.testing.assert_array_equal(first, second)
    assert repaired.metrics == original.metrics


def test_too_many_replicas(make_smoke, tmp_path) -> None:
    """Devices are divided first, before measures are tried on images."""
    tfcomp.register_metric("mine", per="image")(lambda data: None)
    config = make_smoke("--num_replicas=1024", "--batch_size=1024")
    with pytest.raises(ConfigError, match="num_replicas"):
        train_and_evaluate(config)
    assert not list(tmp_path.iterdir())


class Recorder(keras.callbacks.Callback):
    """Keeps all that it is told."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.config, self.epochs, self.metrics = config, [], []

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.epochs.append((epoch, dict(logs)))

    def on_run_end(self, metrics: dict) -> None:
        self.metrics.append(metrics)


@pytest.fixture
def made() -> list[Recorder]:
    """All that were made; a callback without `on_run_end` is another one."""
    recorders: list[Recorder] = []

    @tfcomp.register_callback("recorder")
    def make(config: RunConfig) -> Recorder:
        recorders.append(Recorder(config))
        return recorders[-1]

    tfcomp.register_callback("plain")(lambda _: keras.callbacks.Callback())
    return recorders


def test_they_see_losses_scores_and_the_end(made, make_smoke) -> None:
    flags = ("--epochs=3", "--steps_per_epoch=5", "--eval_every=2")
    config = make_smoke(*flags, *SMALL)
    metrics = train_and_evaluate(config)
    (recorder,) = made
    assert recorder.config == config
    assert [epoch for epoch, _ in recorder.epochs] == [0, 1, 2]
    assert all(logs["loss"] > 0 for _, logs in recorder.epochs)
    # The last epoch is scored after training, as `on_run_end` is told.
    scored = [epoch for epoch, logs in recorder.epochs if "id/mse" in logs]
    assert scored == [1] and "ood/relative_mse" in recorder.epochs[1][1]
    (end,) = recorder.metrics
    assert end["ood"] == metrics["ood"]
    row = read_history(Path(config.run_dir, "history.csv"))[2]
    expected = recorder.epochs[1][1]["ood/mse"]
    assert row["ood/mse"] == pytest.approx(expected, rel=1e-5)
    assert train_and_evaluate(config) == json.loads(json.dumps(metrics))
    assert len(made) == 1  # a finished run trains nothing


def test_callbacks_cannot_stop_before_the_last_epoch(
    make_smoke,
) -> None:
    stopping = keras.callbacks.EarlyStopping("loss", patience=0, mode="max")
    tfcomp.register_callback("early")(lambda _: stopping)
    config = make_smoke("--epochs=9", "--steps_per_epoch=5", *SMALL)
    with pytest.raises(ConfigError, match="epochs must be 2"):
        train_and_evaluate(config)
    assert not Path(config.run_dir, "metrics.json").exists()


def test_what_is_no_callback_is_refused(
    make_smoke,
) -> None:
    tfcomp.register_callback("wrong")(lambda config: print)
    config = make_smoke("--epochs=1", "--steps_per_epoch=1")
    with pytest.raises(RunError, match="'wrong'"):
        train_and_evaluate(config)
    assert not Path(config.run_dir, "metrics.json").exists()
