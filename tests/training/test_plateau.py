"""What changes the steps of a training: plateaus, clipping, the loss."""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from tfcomp.training.fit import make_loss
from tfcomp.training.plateau import PlateauSchedule


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


def test_clipping_and_l1_change_training(
    fit: Callable[..., keras.Model], tmp_path: Path
) -> None:
    def train(*flags: str) -> np.ndarray:
        tiny = ("--flagfile=smoke.flags", "--epochs=1", "--steps_per_epoch=5")
        return fit([*tiny, *flags], tmp_path / "".join(flags)).get_weights()[0]

    base = train()
    assert not np.array_equal(base, train("--clip_norm=1e-3"))
    assert not np.array_equal(base, train("--l1_weight=1"))


def test_loss_against_numpy(rng: np.random.Generator) -> None:
    truth, images = rng.random((2, 3, 4, 4, 1)).astype(np.float32)
    loss = np.asarray(make_loss(0.1)(truth, images))
    error = images - truth
    expected = (error**2 + 0.1 * np.abs(error)).mean(axis=-1)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert make_loss(0.0) == "mean_squared_error"
