"""Learning rates that fall, and axes that are pruned, during training.

Both depend only on the content of a checkpoint, and never on held-out images.
"""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfcomp.config.network_config import TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.models.axis_embedding import AxisEmbedding

FACTOR = 0.5
# An epoch is better only if its loss is lower by this fraction.
THRESHOLD = 1e-4
# Smaller changes of the learning rate are skipped.
SMALLEST_STEP = 1e-8
FALLS = {
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: 0.5 + 0.5 * ops.cos(math.pi * share),
}
# Above this share of the error of the reference image, axes may differ because
# a factor has not found its own yet.
FITTED = 0.5
SAMPLE = 1024


class PlateauSchedule(keras.callbacks.Callback):
    """Halves the learning rate after more than `patience` bad epochs.

    Works like PyTorch's ReduceLROnPlateau, which the published rotation
    experiment used; the callback of Keras loses its state in a kill.
    """

    def __init__(self, patience: int) -> None:
        super().__init__()
        self._patience = patience
        self._best = tf.Variable(math.inf, dtype=tf.float64, trainable=False)
        self._waited = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.state = tf.train.Checkpoint(best=self._best, waited=self._waited)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
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
    """Falls from `rate`, up to step `start`, to 0 at step `end`."""

    def __init__(self, rate: float, start: int, end: int, shape: str) -> None:
        super().__init__()
        self._span = start, end
        self._rate, self._shape = rate, shape

    def __call__(self, step: keras.KerasTensor) -> keras.KerasTensor:
        start, end = self._span
        # Integers up to here: float32 does not tell steps above 2^24 apart.
        past = ops.cast(ops.maximum(ops.cast(step, "int64") - start, 0), float)
        share = ops.minimum(past / (end - start), 1.0)
        return self._rate * FALLS[self._shape](share)

    def get_config(self) -> dict[str, Any]:
        start, end = self._span
        return dict(rate=self._rate, start=start, end=end, shape=self._shape)


def make_rate(config: TrainingConfig, steps: int) -> float | FinalDecay:
    """Returns the learning rate of a run, given the steps of an epoch."""
    if config.decay == "none":
        return config.learning_rate
    end = config.epochs * steps
    start = min(round(end * (1.0 - config.decay_share)), end - 1)
    return FinalDecay(config.learning_rate, start, end, config.decay)


class PruneAxes(keras.callbacks.Callback):
    """Prunes the far weaker axis of factors once examples are partly fitted."""

    def __init__(self, below: float, dataset: Dataset) -> None:
        super().__init__()
        self._below = below
        self._dataset = dataset

    @staticmethod
    def applies(model: keras.Model) -> bool:
        return any(isinstance(x, AxisEmbedding) for x in model.layers)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # The loss includes the noise until examples are memorized.
        blank = FITTED * measure_blank(self._dataset)
        self._enough = blank + self._dataset.noise**2

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        if logs["loss"] < self._enough:
            for layer in self.model.layers:
                if isinstance(layer, AxisEmbedding):
                    layer.prune(self._below)


def measure_blank(dataset: Dataset) -> float:
    """Returns the MSE of the reference image on a training subsample."""
    table = dataset.splits.train
    images = dataset.render_array(table[:: len(table) // SAMPLE + 1])
    return float(np.square(images - dataset.reference).mean())
