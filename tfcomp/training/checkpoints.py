"""Checkpoints at the end of epochs, and exact resume from them.

What a run will do next depends on the weights (with the moving averages of
batch normalization), the optimizer's variables (with its learning rate), the
state of a schedule and the epoch alone: batches are a function of the step
(`batches`), and no layer draws random numbers. So that is all that is saved.
"""

import re
import shutil
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf

from tfcomp.config.errors import RunError, first_line

# A kill while one is written leaves the other.
_KEPT = 2
_INDEX = re.compile(r"ckpt-(\d{1,18})\.index", re.ASCII)


class TrainingState:
    """What a kill must not lose of a compiled model with a built optimizer.

    `seconds` are the training time of all sessions of the run.
    """

    def __init__(
        self, model: keras.Model, folder: str, **schedules: tf.train.Checkpoint
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
        _ = self._checkpoint.save_counter  # in checkpoints of all versions
        self._folder = Path(folder)

    def save(self, epoch: int) -> None:
        """Saves the state after `epoch` epochs; keeps one of before, too."""
        self._epoch.assign(epoch)
        # The files get their names only when they are whole.
        self._checkpoint.write(str(self._folder / f"ckpt-{epoch}"))
        epochs = list_epochs(self._folder)
        # Later epochs are of checkpoints that could not be read.
        kept = [e for e in epochs if e <= epoch][:_KEPT]
        for other in set(epochs) - set(kept):
            for file in self._folder.glob(f"ckpt-{other}.*"):
                file.unlink()

    def restore(self) -> int:
        """Loads the latest checkpoint that can be read; returns its epoch or 0.

        A RunError if there are some, and none can be read. TensorFlow's list of
        them, which is not flushed to the disk, is not looked at.
        """
        for left in self._folder.glob("ckpt-*_temp"):
            shutil.rmtree(left)  # of a process that was killed
        problems = []
        for epoch in list_epochs(self._folder):
            path = str(self._folder / f"ckpt-{epoch}")
            try:
                self._checkpoint.restore(path).assert_consumed()
            except Exception as error:  # whatever a damaged file leads to
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
    """Epochs of the checkpoints in a folder, latest first."""
    names = (_INDEX.fullmatch(file.name) for file in folder.glob("ckpt-*"))
    return sorted((int(name[1]) for name in names if name), reverse=True)


class SaveState(keras.callbacks.Callback):
    """Saves after the last epoch, and once `every_seconds` have passed.

    Sums the training time (of `EpochTimer`) over all sessions of the run.
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
    """Adds `seconds`, of the training steps alone, to the epoch's logs.

    Must come before the callbacks that read it.
    """

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._start = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self._end = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        logs["seconds"] = self._end - self._start
