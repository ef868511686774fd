"""What changes in the course of a training: its rate, and axes that are pruned.

Both depend on what a checkpoint has, so that a resumed run ends in the same
bits; held-out combinations have no say.
"""

import math

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfcomp.config.training_config import TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.models.axis_embedding import AxisEmbedding

FACTOR = 0.5
# An epoch is better only if its loss is lower by this fraction.
THRESHOLD = 1e-4
# A step of the learning rate below this is not made.
SMALLEST_STEP = 1e-8
FALLS = {
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: 0.5 + 0.5 * ops.cos(math.pi * share),
}
# Before the loss is below this share of the error of the reference, axes may
# be apart because a factor has not found its own yet.
FITTED = 0.5
SAMPLE = 1024


class PlateauSchedule(keras.callbacks.Callback):
    """Halves the learning rate after more than `patience` bad epochs.

    As PyTorch's ReduceLROnPlateau, in which the rotation experiment was
    published. (That of Keras has its state in Python numbers, which a kill
    loses.) Must come before the callback that saves the training `state`.
    """

    def __init__(self, patience: int) -> None:
        super().__init__()
        self._patience = patience
        self._best = tf.Variable(math.inf, dtype=tf.float64, trainable=False)
        self._waited = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.state = tf.train.Checkpoint(best=self._best, waited=self._waited)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        loss = logs["loss"]
        if loss < float(self._best.numpy()) * (1.0 - THRESHOLD):
            self._best.assign(loss)
            self._waited.assign(0)
        else:
            self._waited.assign_add(1)
        if int(self._waited.numpy()) > self._patience:
            rate = self.model.optimizer.learning_rate
            old = float(rate.numpy())
            if old * (1.0 - FACTOR) > SMALLEST_STEP:
                rate.assign(old * FACTOR)
            self._waited.assign(0)


@keras.saving.register_keras_serializable(package="tfcomp")
class FinalDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Falls from `rate`, up to step `start`, to 0 at step `end`.

    The shape is `"linear"` or `"cosine"`. A training of `end` steps does not
    reach the rate 0.
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


class PruneAxes(keras.callbacks.Callback):
    """Prunes the weaker axis of a factor when it is far below the other.

    At the end of epochs, once the training examples are fitted in part. Must
    come before the callback that saves the training state. `below` is that of
    `AxisEmbedding.prune`.
    """

    def __init__(self, below: float, dataset: Dataset) -> None:
        super().__init__()
        self._below = below
        self._dataset = dataset

    def on_train_begin(self, logs: dict | None = None) -> None:
        layers = self.model.layers
        self._found = [x for x in layers if isinstance(x, AxisEmbedding)]
        if self._found:
            # The loss has the noise of the examples, too, until they are
            # learned by heart.
            blank = FITTED * measure_blank(self._dataset)
            self._enough = blank + self._dataset.noise**2

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self._found and logs["loss"] < self._enough:
            for layer in self._found:
                layer.prune(self._below)


def measure_blank(dataset: Dataset) -> float:
    """MSE of the reference image on a sample of training examples."""
    table = dataset.splits.train
    images = dataset.render_array(table[:: len(table) // SAMPLE + 1])
    return float(np.square(images - dataset.reference).mean())
