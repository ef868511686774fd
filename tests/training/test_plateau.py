"""Learning rates, clipping and the loss change the steps of a training."""

import math

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import TrainingConfig
from tfcomp.training.callbacks import PlateauSchedule
from tfcomp.training.prepared_models import (
    FinalDecay,
    compile_model,
    make_loss,
    make_rate,
)


def make_model() -> keras.Model:
    factors = keras.Input((1,))
    return keras.Model(factors, keras.layers.Dense(1)(factors))


@pytest.mark.parametrize(
    ("losses", "patience", "halvings"),
    [
        ([3, 2, 2, 2, 2, 1, 1, 1, 1], 2, [4, 8]),
        # Hardly better is not better.
        ([1.0, 0.99995, 0.9999], 1, [2]),
        ([1.0, 0.9995, 0.999], 1, []),
    ],
)
def test_rate_halves_after_bad_epochs(losses, patience, halvings):
    model = make_model()
    optimizer = keras.optimizers.AdamW(learning_rate=1.0)
    model.compile(optimizer, "mse")
    schedule = PlateauSchedule(patience)
    schedule.set_model(model)

    rate = 1.0
    for epoch, loss in enumerate(losses):
        schedule.on_epoch_end(epoch, {"loss": loss})
        if epoch in halvings:
            rate /= 2
        assert optimizer.learning_rate.numpy() == rate


def test_loss_against_numpy(rng):
    truth, images = rng.random((2, 3, 4), np.float32)

    loss = make_loss(0.1)(truth, images)

    error = np.abs(images - truth)
    expected = np.mean(error**2 + 0.1 * error, axis=-1)
    assert_allclose(loss, expected, rtol=1e-6)


def test_settings_of_the_optimizer():
    config = TrainingConfig(clip_norm=0.5)
    model = make_model()

    compile_model(model, config, 3)

    assert model.optimizer.global_clipnorm == 0.5
    assert model.optimizer.learning_rate == config.learning_rate
    assert model.loss == "mean_squared_error"


def test_rates_by_hand():
    config = TrainingConfig(
        epochs=5,
        learning_rate=2.0,
        decay="linear",
    )
    linear = make_rate(config, 4)
    rates = [linear(step) for step in range(20)]
    assert_allclose(rates[:17], 2)
    assert_allclose(rates[17:], [1.5, 1, 0.5])

    cosine = FinalDecay(2.0, 16, 20, "cosine")
    for step in range(5):
        expected = 1 + math.cos(math.pi * step / 4)
        assert_allclose(cosine(16 + step), expected, atol=1e-6)
    assert_allclose(cosine(25), 0, atol=1e-6)


def test_steps_beyond_float32_are_told_apart():
    rate = FinalDecay(1.0, 2**30, 2**30 + 4, "linear")

    data = keras.optimizers.schedules.serialize(rate)
    loaded = keras.optimizers.schedules.deserialize(data)

    assert float(rate(2**30 + 1)) == 0.75
    assert float(loaded(2**30 + 1)) == 0.75


def test_one_schedule_at_a_time():
    with pytest.raises(ConfigError, match="decay"):
        TrainingConfig(decay="linear", plateau_patience=2)
