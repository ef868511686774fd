"""Learning rates, clipping and the loss change the steps of a training."""

import math

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import TrainingConfig
from tfcomp.training.callbacks import FinalDecay, PlateauSchedule, make_rate
from tfcomp.training.prepared_models import compile_model, make_loss


def make_model() -> keras.Model:
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])


@pytest.mark.parametrize(
    ("losses", "patience", "expected"),
    [
        ([3, 2, 2, 2, 2, 1, 1, 1, 1], 2, [1, 1, 1, 1] + [0.5] * 4 + [0.25]),
        # Hardly better is not better.
        ([1.0, 0.99995, 0.9999], 1, [1, 1, 0.5]),
        ([1.0, 0.9995, 0.999], 1, [1, 1, 1]),
    ],
)
def test_rate_halves_after_bad_epochs(losses, patience, expected) -> None:
    model = make_model()
    model.compile(keras.optimizers.AdamW(learning_rate=1.0), "mse")
    schedule = PlateauSchedule(patience)
    schedule.set_model(model)

    rates = []
    for epoch, loss in enumerate(losses):
        schedule.on_epoch_end(epoch, {"loss": loss})
        rates.append(float(model.optimizer.learning_rate.numpy()))

    assert rates == expected


def test_loss_against_numpy_and_clipping(rng) -> None:
    truth, images = rng.random((2, 3, 4, 4, 1)).astype(np.float32)
    error = images - truth
    expected = np.mean(error**2 + 0.1 * np.abs(error), axis=-1)
    assert_allclose(make_loss(0.1)(truth, images), expected, rtol=1e-6)

    config = TrainingConfig(clip_norm=0.5)
    model = make_model()
    compile_model(model, config, 3)
    assert model.optimizer.global_clipnorm == 0.5
    assert model.optimizer.learning_rate == config.learning_rate
    assert model.loss == "mean_squared_error"


def test_rates_by_hand() -> None:
    config = TrainingConfig(
        epochs=5,
        learning_rate=2.0,
        decay="linear",
    )
    linear = make_rate(config, 4)
    rates = [float(linear(step)) for step in range(20)]
    assert_allclose(rates, [2] * 16 + [2, 1.5, 1, 0.5])

    cosine = FinalDecay(2.0, 16, 20, "cosine")
    for step in range(16, 21):
        expected = 1 + math.cos(math.pi * (step - 16) / 4)
        assert_allclose(cosine(step), expected, atol=1e-6)
    assert_allclose(cosine(25), 0, atol=1e-6)


def test_steps_beyond_float32_are_told_apart() -> None:
    rate = FinalDecay(1.0, 2**30, 2**30 + 4, "linear")

    data = keras.optimizers.schedules.serialize(rate)
    loaded = keras.optimizers.schedules.deserialize(data)

    assert float(rate(2**30 + 1)) == 0.75
    assert float(loaded(2**30 + 1)) == 0.75


def test_one_schedule_at_a_time() -> None:
    with pytest.raises(ConfigError, match="decay"):
        TrainingConfig(decay="linear", plateau_patience=2)
