"""Learning rates, clipping and the loss change the steps of a training."""

import math

import keras
import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import TrainingConfig
from tfcomp.training.callbacks import FinalDecay, PlateauSchedule, make_rate
from tfcomp.training.prepared_models import compile_model, make_loss


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


def test_loss_against_numpy_and_clipping(rng) -> None:
    truth, images = rng.random((2, 3, 4, 4, 1)).astype(np.float32)
    loss = np.asarray(make_loss(0.1)(truth, images))
    error = images - truth
    expected = (error**2 + 0.1 * np.abs(error)).mean(axis=-1)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    compile_model(model, TrainingConfig(clip_norm=0.5), 3)
    assert model.optimizer.global_clipnorm == 0.5
    assert model.optimizer.learning_rate == TrainingConfig().learning_rate
    assert model.loss == make_loss(0.0) == "mean_squared_error"


def test_rates_by_hand() -> None:
    config = TrainingConfig(epochs=5, learning_rate=2.0, decay="linear")
    rates = [float(make_rate(config, 4)(step)) for step in range(20)]
    np.testing.assert_allclose(rates, [2] * 16 + [2, 1.5, 1, 0.5])
    cosine = FinalDecay(2.0, 16, 20, "cosine")
    expected = [1 + math.cos(math.pi * part / 4) for part in range(4)]
    found = [float(cosine(step)) for step in range(16, 20)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert float(cosine(25)) == pytest.approx(0, abs=1e-6)


def test_steps_beyond_float32_are_told_apart() -> None:
    rate = FinalDecay(1.0, 2**30, 2**30 + 4, "linear")
    data = keras.optimizers.schedules.serialize(rate)
    for schedule in (rate, keras.optimizers.schedules.deserialize(data)):
        assert float(schedule(2**30 + 1)) == 0.75


def test_one_schedule_at_a_time() -> None:
    with pytest.raises(ConfigError, match="--decay must be none with"):
        TrainingConfig(decay="linear", plateau_patience=2)
