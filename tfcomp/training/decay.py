"""A learning rate that is constant at first and falls to 0 at the end.

A function of the optimizer's step, which a checkpoint has: nothing more needs
to be saved, and a resumed run ends in the same bits.
"""

import math

import keras
from keras import ops

from tfcomp.config.training_config import TrainingConfig

FALLS = {
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: 0.5 + 0.5 * ops.cos(math.pi * share),
}


@keras.saving.register_keras_serializable(package="tfcomp")
class FinalDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Falls from `rate` to 0 between two steps.

    Args:
        rate: The learning rate up to step `start`.
        start: The last step with the whole rate.
        end: The first step with a rate of 0, which a training of so many
            steps does not reach.
        shape: `"linear"` or `"cosine"`.
    """

    def __init__(self, rate: float, start: int, end: int, shape: str) -> None:
        super().__init__()
        self._config = dict(rate=rate, start=start, end=end, shape=shape)

    def __call__(self, step: keras.KerasTensor) -> keras.KerasTensor:
        start, end = self._config["start"], self._config["end"]
        # Integers up to here: float32 does not tell steps above 2^24 apart.
        past = ops.cast(ops.maximum(ops.cast(step, "int64") - start, 0), float)
        share = ops.minimum(past / (end - start), 1.0)
        return self._config["rate"] * FALLS[self._config["shape"]](share)

    def get_config(self) -> dict:
        return dict(self._config)


def make_rate(config: TrainingConfig, steps: int) -> float | FinalDecay:
    """The learning rate of a run with so many steps in an epoch."""
    if config.decay == "none":
        return config.learning_rate
    end = config.epochs * steps
    start = min(round(end * (1.0 - config.decay_share)), end - 1)
    return FinalDecay(config.learning_rate, start, end, config.decay)
