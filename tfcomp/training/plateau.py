"""Learning rate that is halved when the loss no longer falls.

The rule of PyTorch's ReduceLROnPlateau with factor 0.5, in which the
rotation experiment was published; `keras.callbacks.ReduceLROnPlateau` keeps
its state in Python numbers, which a kill would lose.

The *training* loss is watched. Every ID example is trained on, so there is
no validation set to watch; held-out combinations must not steer training,
or they would not be held out; and the mean loss of an epoch is known without
further passes and returns exactly after a resume.
"""

import keras
import tensorflow as tf

FACTOR = 0.5
# An epoch is better only if its loss is lower by this fraction.
THRESHOLD = 1e-4
# A step of the learning rate below this is not made.
SMALLEST_STEP = 1e-8


class PlateauSchedule(keras.callbacks.Callback):
    """Halves the learning rate after more than `patience` bad epochs.

    Must come before the callback that saves the training state.

    Attributes:
        state: What a checkpoint must hold: the best loss so far, and the
            number of epochs since. (The learning rate is one of the
            optimizer's variables.)
    """

    def __init__(self, patience: int) -> None:
        super().__init__()
        self._patience = patience
        self._best = tf.Variable(
            float("inf"), dtype=tf.float64, trainable=False
        )
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
            self._reduce()
            self._waited.assign(0)

    def _reduce(self) -> None:
        rate = self.model.optimizer.learning_rate
        old = float(rate.numpy())
        if old * (1.0 - FACTOR) > SMALLEST_STEP:
            rate.assign(old * FACTOR)
