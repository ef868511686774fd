"""Callbacks of `fit`: checkpoints, falling learning rates, pruned axes.

The state of a run is its weights, its optimizer with the rate, a schedule, the
random states of layers (dropout), and the epoch: batches follow from the step.
Schedules and pruning depend on that state alone, never on held-out images.
"""

import math
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfcomp.config.errors import RunError, first_line
from tfcomp.config.run_config import TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.models.forced_rendering import AxisEmbedding

# Keep two: a crash during a write must leave one.
_KEPT = 2
_INDEX = re.compile(r"ckpt-(\d{1,18})\.index", re.ASCII)
FACTOR = 0.5
# An epoch is better only if its loss is lower by this fraction.
THRESHOLD = 1e-4
# Smaller changes of the learning rate are skipped.
SMALLEST_STEP = 1e-8
# Above this share of the error of the reference image, axes may differ because
# a factor has not found its own yet.
FITTED = 0.5
SAMPLE = 1024


class TrainingState:
    """The state of a compiled model with a built optimizer, and its files.

    Args:
        model: The model.
        folder: The folder of checkpoints.
        **schedules: More states, by their names in checkpoints.
    """

    def __init__(
        self,
        model: keras.Model,
        folder: str,
        **schedules: tf.train.Checkpoint,
    ) -> None:
        self._epoch = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
        )
        # The training time of all sessions of the run.
        self.seconds = tf.Variable(
            0.0,
            dtype=tf.float64,
            trainable=False,
        )
        weights = {id(variable) for variable in model.weights}
        random = []
        for variable in model.variables:
            if id(variable) not in weights:
                random.append(variable.value)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=model.optimizer,
            epoch=self._epoch,
            seconds=self.seconds,
            random=random,
            **schedules,
        )
        self._folder = Path(folder)

    def save(self, epoch: int) -> None:
        """Saves the state after `epoch` epochs, and keeps the one before.

        Args:
            epoch: The number of epochs that are trained.
        """
        self._epoch.assign(epoch)
        # Files get their final names when they are complete.
        path = self._folder / f"ckpt-{epoch}"
        self._checkpoint.write(str(path))
        num_kept = 0
        for saved in list_epochs(self._folder):
            # Later checkpoints could not be read.
            if saved <= epoch and num_kept < _KEPT:
                num_kept += 1
                continue
            for file in self._folder.glob(f"ckpt-{saved}.*"):
                file.unlink()

    def restore(self) -> int:
        """Loads the latest readable checkpoint.

        Returns:
            Its epoch; 0 if there are no checkpoints.

        Raises:
            RunError: None of the checkpoints can be read.
        """
        for left in self._folder.glob("ckpt-*_temp"):
            shutil.rmtree(left)  # left by a kill
        problems = []
        for epoch in list_epochs(self._folder):
            path = str(self._folder / f"ckpt-{epoch}")
            try:
                # `restore` would ask for a counter of checkpoints, too.
                status = self._checkpoint.read(path)
                status.assert_existing_objects_matched()
            except Exception as error:  # damage has errors of many kinds
                reason = f"cannot be read ({first_line(error)})"
                problems.append(f"the checkpoint {path} {reason}")
                continue
            for problem in problems:
                note = f"note: {problem}; on from epoch {epoch}"
                print(note, file=sys.stderr)
            return epoch
        if problems:
            raise RunError(
                f"{problems[0]}; remove {self._folder} to start over"
            )
        return 0


def list_epochs(folder: Path) -> list[int]:
    """Returns the epochs of the checkpoints in a folder, latest first."""
    epochs = []
    for file in folder.glob("ckpt-*"):
        name = _INDEX.fullmatch(file.name)
        if name:
            epochs.append(int(name[1]))
    return sorted(epochs, reverse=True)


class SaveState(keras.callbacks.Callback):
    """Saves after the last epoch, and now and then between compiled calls.

    Args:
        state: What is saved.
        every_seconds: Seconds from one checkpoint to the next, at least.
        first: The number of epochs that are trained already.
        span: The number of epochs of one compiled call.
    """

    def __init__(
        self,
        state: TrainingState,
        every_seconds: float,
        first: int,
        span: int,
    ) -> None:
        super().__init__()
        self._state = state
        self._every_seconds = every_seconds
        self._first = first
        self._span = span

    def on_train_begin(self, logs: Any = None) -> None:
        self._last_save = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """Saves a checkpoint if one is due, and after the last epoch."""
        self._state.seconds.assign_add(logs["seconds"])
        done = epoch + 1
        waited = time.monotonic() - self._last_save
        is_last = done == self.params["epochs"]
        num_trained = done - self._first
        is_end_of_call = num_trained % self._span == 0
        is_due = is_end_of_call and waited >= self._every_seconds
        if is_last or is_due:
            self._state.save(done)
            self._last_save = time.monotonic()


class EpochTimer(keras.callbacks.Callback):
    """Adds the `seconds` of the training steps to the logs of epochs.

    Args:
        first: The number of epochs that are trained already.
        span: The number of epochs of one compiled call.
    """

    def __init__(self, first: int = 0, span: int = 1) -> None:
        super().__init__()
        self._first = first
        self._span = span

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        num_trained = epoch - self._first
        if num_trained % self._span == 0:
            self._start = time.monotonic()
            self._end = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._span == 1 or not self._end:
            self._end = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        seconds = self._end - self._start
        logs["seconds"] = seconds / self._span


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


@keras.saving.register_keras_serializable(package="tfcomp")
class FinalDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that falls to 0 at the end of a training.

        rate f((step - start) / (end - start)) from step `start` on

    with f(s) = 1 - s (`"linear"`) or (1 + cos pi s) / 2 (`"cosine"`).

    Args:
        rate: The learning rate before.
        start: The step at which it begins to fall.
        end: The step at which it is 0.
        shape: `"linear"` or `"cosine"`.
    """

    def __init__(
        self,
        rate: float,
        start: int,
        end: int,
        shape: str,
    ) -> None:
        super().__init__()
        self._config = {
            "rate": rate,
            "start": start,
            "end": end,
            "shape": shape,
        }
        self._rate = rate
        self._start = start
        self._length = end - start
        self._shape = shape

    def __call__(self, step: keras.KerasTensor) -> keras.KerasTensor:
        # Integers up to here: float32 does not tell steps above 2^24 apart.
        step = ops.cast(step, "int64")
        steps_past = step - self._start
        steps_past = ops.maximum(steps_past, 0)
        steps_past = ops.cast(steps_past, float)
        share = steps_past / self._length
        share = ops.minimum(share, 1.0)
        if self._shape == "linear":
            return self._rate * (1.0 - share)
        wave = ops.cos(math.pi * share)
        return self._rate * (0.5 + 0.5 * wave)

    def get_config(self) -> dict[str, Any]:
        return self._config


def clip_total_gradient(optimizer: keras.Optimizer) -> None:
    """Clips the gradient of all replicas; Keras clips the part of each."""
    clip = optimizer._clip_gradients

    def clip_sum(parts: list) -> list:
        context = tf.distribute.get_replica_context()
        tensors = [tf.convert_to_tensor(part) for part in parts]
        sums = context.all_reduce("sum", tensors)
        num_replicas = context.num_replicas_in_sync
        clipped = clip(sums)
        return [gradient / num_replicas for gradient in clipped]

    optimizer._clip_gradients = clip_sum


def make_rate(config: TrainingConfig, steps: int) -> float | FinalDecay:
    """Returns the learning rate of a run, or its fall.

    Args:
        config: The training.
        steps: Steps of an epoch.
    """
    if config.decay == "none":
        return config.learning_rate
    end = config.epochs * steps
    start = round(end * (1.0 - config.decay_share))
    start = min(start, end - 1)
    return FinalDecay(
        config.learning_rate,
        start=start,
        end=end,
        shape=config.decay,
    )


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


def list_axis_embeddings(model: keras.Model) -> list[AxisEmbedding]:
    """Returns the layers of hard rendering whose axes may be pruned."""
    axes = []
    for layer in model.layers:
        if isinstance(layer, AxisEmbedding):
            axes.append(layer)
    return axes


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
