"""Checkpoints at the end of epochs, and exact resume from them.

What a run will do next depends on the weights (with the moving averages of
batch normalization), the optimizer's variables (with its learning rate), the
state of a schedule and the epoch alone: batches are a function of the step
(`batches`), and no layer draws random numbers. So that is all that is saved.
"""

from __future__ import annotations

import os
import time

import keras
import tensorflow as tf

from tfcomp.config.errors import RunError


class TrainingState:
    """The part of a training that a kill must not lose.

    Args:
        model: A compiled model whose optimizer is built.
        folder: Where checkpoints live.
        **schedules: More trackable state, by name.

    Attributes:
        seconds: Training time of all sessions of the run.
    """

    def __init__(
        self,
        model: keras.Model,
        folder: str,
        **schedules: tf.train.Checkpoint,
    ) -> None:
        self._epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=model.optimizer,
            epoch=self._epoch,
            seconds=self.seconds,
            **schedules,
        )
        # A new checkpoint gets its name only when it is whole; two are kept,
        # so that a kill while one is written leaves the other.
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, folder, max_to_keep=2
        )

    def save(self, epoch: int) -> None:
        """Saves the state after `epoch` epochs."""
        self._epoch.assign(epoch)
        self._manager.save(checkpoint_number=epoch)

    def restore(self) -> int:
        """Loads the latest checkpoint; returns its epoch, 0 without one.

        Raises:
            RunError: If a checkpoint exists but cannot be read.
        """
        latest = self._manager.latest_checkpoint
        if latest is None:
            return 0
        try:
            self._checkpoint.restore(latest).assert_consumed()
        except Exception as error:  # whatever a damaged file leads to
            reason = str(error).splitlines()[0]
            raise RunError(
                f"the checkpoint {latest} cannot be read ({reason}); remove "
                f"{os.path.dirname(latest)} to start over"
            ) from error
        return int(self._epoch.numpy())


class SaveState(keras.callbacks.Callback):
    """Saves at the end of an epoch once `every_seconds` have passed.

    Always saves after the last epoch. Sums the training time (`seconds` in
    the logs, see `EpochTimer`) over all sessions of the run.
    """

    def __init__(self, state: TrainingState, every_seconds: float) -> None:
        super().__init__()
        self._state = state
        self._every_seconds = every_seconds

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._last_save = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self._state.seconds.assign_add(logs["seconds"])
        waited = time.monotonic() - self._last_save
        is_last = epoch + 1 == self.params["epochs"]
        if waited >= self._every_seconds or is_last:
            self._state.save(epoch + 1)
            self._last_save = time.monotonic()


class EpochTimer(keras.callbacks.Callback):
    """Adds `seconds`, the time of the training steps, to the epoch's logs.

    What other callbacks do between epochs is not training and not counted.
    Must come before the callbacks that read it.
    """

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._start = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self._end = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        logs["seconds"] = self._end - self._start
