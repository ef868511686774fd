"""Callbacks that change a training: a falling learning rate, pruned axes.

They depend on the state in a checkpoint alone, never on held-out images.
"""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.datasets import Dataset
from tfcomp.training.prepared_models import list_axis_embeddings

FACTOR = 0.5
# An epoch is better only if its loss is lower by this fraction.
THRESHOLD = 1e-4
# Smaller changes of the learning rate are skipped.
SMALLEST_STEP = 1e-8
# Above this share of the error of the reference image, axes may differ because
# a factor has not found its own yet.
FITTED = 0.5
SAMPLE = 1024


class PlateauSchedule(keras.callbacks.Callback):
    """Halves the learning rate after more than `patience` bad epochs.

    Works like PyTorch's ReduceLROnPlateau, which the published rotation
    experiment used; the callback of Keras loses its state in a kill.

    Args:
        patience: Epochs without a lower loss that are waited for.
    """

    def __init__(self, patience: int) -> None:
        super().__init__()
        self._patience = patience
        self._best = tf.Variable(
            math.inf,
            dtype=tf.float64,
            trainable=False,
        )
        self._waited = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
        )
        self.state = tf.train.Checkpoint(best=self._best, waited=self._waited)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """Halves the learning rate when the loss has waited long enough."""
        loss = logs["loss"]
        best = float(self._best.numpy())
        threshold = best * (1.0 - THRESHOLD)
        if loss < threshold:
            self._best.assign(loss)
            self._waited.assign(0)
            return

        self._waited.assign_add(1)
        waited = int(self._waited.numpy())
        if waited <= self._patience:
            return

        self._waited.assign(0)
        rate = self.model.optimizer.learning_rate
        old_rate = float(rate.numpy())
        change = old_rate * (1.0 - FACTOR)
        if change > SMALLEST_STEP:
            new_rate = old_rate * FACTOR
            rate.assign(new_rate)


class PruneAxes(keras.callbacks.Callback):
    """Prunes the far weaker axis of factors once examples are partly fitted.

    Args:
        below: The ratio of both axes that is far.
        dataset: Has the training table.
    """

    def __init__(self, below: float, dataset: Dataset) -> None:
        super().__init__()
        self._below = below
        self._dataset = dataset

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # The loss includes the noise until examples are memorized.
        noise = self._dataset.noise**2
        fitted = measure_fitted(self._dataset)
        self._enough = fitted + noise

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        if logs["loss"] >= self._enough:
            return
        for layer in list_axis_embeddings(self.model):
            layer.prune(self._below)


def measure_fitted(dataset: Dataset) -> float:
    """Returns the MSE of partly fitted combinations in a subsample."""
    table = dataset.splits.train
    num_rows = len(table)
    step = num_rows // SAMPLE + 1
    rows = np.arange(0, num_rows, step)
    means = dataset.render_array(table[rows])  # over images of a combination
    images = dataset.render_training(rows)

    from_blank = means - dataset.reference
    blank_error = np.square(from_blank).mean()
    from_means = images - means
    spread = np.square(from_means).mean()
    fitted = FITTED * blank_error + spread
    return float(fitted)
