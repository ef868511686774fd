"""A learning rate that falls at the end, as a function of the step."""

import math

import keras
import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.network_config import TrainingConfig
from tfcomp.training.plateau import FinalDecay, make_rate


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
    assert float(rate(2**30 + 1)) == 0.75


@pytest.mark.parametrize("share", [1e-9, 1.0])
def test_extreme_shares_train(share: float) -> None:
    config = TrainingConfig(epochs=2, decay="cosine", decay_share=share)
    rates = [float(make_rate(config, 3)(step)) for step in range(6)]
    assert rates[0] == pytest.approx(1e-3)
    assert min(rates) > 0


def test_no_decay_is_a_number() -> None:
    assert make_rate(TrainingConfig(), 10) == 1e-3


def test_configuration_round_trip() -> None:
    rate = FinalDecay(1.0, 2, 8, "cosine")
    data = keras.optimizers.schedules.serialize(rate)
    again = keras.optimizers.schedules.deserialize(data)
    assert float(again(5)) == float(rate(5)) == pytest.approx(0.5)


def test_one_schedule_at_a_time() -> None:
    with pytest.raises(ConfigError, match="--decay must be none with"):
        TrainingConfig(decay="linear", plateau_patience=2)
