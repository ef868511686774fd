"""The plateau schedule, and exact resume of all that rotation needs."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.training.experiment import make_training_model
from tfcomp.training.fit import fit_model
from tfcomp.training.losses import make_loss
from tfcomp.training.plateau import PlateauSchedule
from tfcomp.training.strategy import make_strategy

EPOCHS = 9


class StopAfter(keras.callbacks.Callback):
    """Interrupts training in the middle of the next epoch."""

    def __init__(self, epochs: int) -> None:
        super().__init__()
        self._epochs = epochs

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._now = epoch

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        if self._now == self._epochs:
            raise KeyboardInterrupt


def make_run(*flags: str) -> RunConfig:
    # A rate so large that the loss stops falling within a few epochs.
    return parse_config(
        [
            "--flagfile=rotated_mnist.flags",
            "--digit_source=stand_in",
            "--num_angles=25",
            "--width=4",
            "--batch_size=8",
            "--learning_rate=0.5",
            "--plateau_patience=1",
            "--checkpoint_seconds=0",
            f"--epochs={EPOCHS}",
            *flags,
        ]
    )


def fit(
    config: RunConfig, folder: Path, *callbacks: keras.callbacks.Callback
) -> keras.Model:
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    fit_model(model, dataset, config, str(folder), callbacks)
    return model


def follow(losses: list[float], patience: int) -> list[float]:
    """Learning rates after each epoch with these losses."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.AdamW(learning_rate=1.0), "mse")
    schedule = PlateauSchedule(patience)
    schedule.set_model(model)
    rates = []
    for epoch, loss in enumerate(losses):
        schedule.on_epoch_end(epoch, {"loss": loss})
        rates.append(float(model.optimizer.learning_rate.numpy()))
    return rates


def test_rate_halves_after_more_than_patience_bad_epochs() -> None:
    losses = [3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    expected = [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125]
    assert follow(losses, patience=2) == expected


def test_hardly_better_is_not_better() -> None:
    assert follow([1.0, 0.99995, 0.9999], patience=1) == [1, 1, 0.5]
    assert follow([1.0, 0.9995, 0.999], patience=1) == [1, 1, 1]


def test_rate_does_not_vanish() -> None:
    assert follow([1.0] * 60, patience=1)[-1] > 1e-8


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> keras.Model:
    return fit(make_run(), tmp_path_factory.mktemp("whole"))


def test_the_rate_was_reduced(undisturbed: keras.Model) -> None:
    assert float(undisturbed.optimizer.learning_rate.numpy()) < 0.5


@pytest.mark.parametrize("epochs", [1, 3, 4, 6])
def test_resume_is_exact(
    undisturbed: keras.Model, tmp_path: Path, epochs: int
) -> None:
    """Weights, moving averages, rate and the schedule's memory."""
    with pytest.raises(KeyboardInterrupt):
        fit(make_run(), tmp_path, StopAfter(epochs))
    resumed = fit(make_run(), tmp_path)
    pairs = zip(
        [*undisturbed.variables, *undisturbed.optimizer.variables],
        [*resumed.variables, *resumed.optimizer.variables],
        strict=True,
    )
    for first, second in pairs:
        np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_clipping_and_l1_change_training(tmp_path: Path) -> None:
    def train(*flags: str) -> np.ndarray:
        config = make_run("--epochs=1", "--plateau_patience=0", *flags)
        name = "_".join(flags).replace("-", "")
        return fit(config, tmp_path / name).get_weights()[0]

    base = train("--clip_norm=0", "--l1_weight=0")
    assert not np.array_equal(base, train("--clip_norm=1e-3", "--l1_weight=0"))
    assert not np.array_equal(base, train("--clip_norm=0", "--l1_weight=1"))


def test_loss_against_numpy(rng: np.random.Generator) -> None:
    truth, images = rng.random((2, 3, 4, 4, 1)).astype(np.float32)
    loss = np.asarray(make_loss(0.1)(truth, images))
    error = images - truth
    expected = (error**2 + 0.1 * np.abs(error)).mean(axis=-1)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert make_loss(0.0) == "mean_squared_error"
