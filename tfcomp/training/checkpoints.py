"""Checkpoints at the end of epochs, and exact resume from them.

The state of a run is its weights, its optimizer with the rate, a schedule, and
the epoch: batches follow from the step, and no layer draws random numbers.
"""

import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfcomp.config.errors import RunError, first_line

# A kill while one is written leaves the other.
_KEPT = 2
_INDEX = re.compile(r"ckpt-(\d{1,18})\.index", re.ASCII)


class TrainingState:
    """The state of a compiled model with a built optimizer, and its files."""

    def __init__(
        self, model: keras.Model, folder: str, **schedules: tf.train.Checkpoint
    ) -> None:
        self._epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        # The training time of all sessions of the run.
        self.seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=model.optimizer,
            epoch=self._epoch,
            seconds=self.seconds,
            **schedules,
        )
        _ = self._checkpoint.save_counter  # in checkpoints of all versions
        self._folder = Path(folder)

    def save(self, epoch: int) -> None:
        """Saves the state after `epoch` epochs, and keeps the one before."""
        self._epoch.assign(epoch)
        # Files get their final names when they are complete.
        self._checkpoint.write(str(self._folder / f"ckpt-{epoch}"))
        epochs = list_epochs(self._folder)
        # Later checkpoints could not be read.
        kept = [e for e in epochs if e <= epoch][:_KEPT]
        for other in set(epochs) - set(kept):
            for file in self._folder.glob(f"ckpt-{other}.*"):
                file.unlink()

    def restore(self) -> int:
        """Loads the latest readable checkpoint; returns its epoch, or 0."""
        for left in self._folder.glob("ckpt-*_temp"):
            shutil.rmtree(left)  # left by a kill
        problems = []
        for epoch in list_epochs(self._folder):
            path = str(self._folder / f"ckpt-{epoch}")
            try:
                self._checkpoint.restore(path).assert_consumed()
            except Exception as error:  # damage has errors of many kinds
                reason = f"cannot be read ({first_line(error)})"
                problems.append(f"the checkpoint {path} {reason}")
                continue
            epoch = int(self._epoch.numpy())
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
    names = (_INDEX.fullmatch(file.name) for file in folder.glob("ckpt-*"))
    return sorted((int(name[1]) for name in names if name), reverse=True)


class SaveState(keras.callbacks.Callback):
    """Saves after the last epoch, and every so many seconds between calls."""

    def __init__(
        self, state: TrainingState, every_seconds: float, first: int, span: int
    ) -> None:
        super().__init__()
        self._state, self._every_seconds = state, every_seconds
        self._first, self._span = first, span

    def on_train_begin(self, logs: Any = None) -> None:
        self._last_save = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        self._state.seconds.assign_add(logs["seconds"])
        waited = time.monotonic() - self._last_save
        is_last = epoch + 1 == self.params["epochs"]
        is_end = not (epoch + 1 - self._first) % self._span
        if is_last or (is_end and waited >= self._every_seconds):
            self._state.save(epoch + 1)
            self._last_save = time.monotonic()


class EpochTimer(keras.callbacks.Callback):
    """Adds the `seconds` of the training steps to the logs of epochs."""

    def __init__(self, first: int = 0, span: int = 1) -> None:
        super().__init__()
        self._first, self._span = first, span

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if not (epoch - self._first) % self._span:
            self._start, self._end = time.monotonic(), 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._span == 1 or not self._end:
            self._end = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        logs["seconds"] = (self._end - self._start) / self._span
