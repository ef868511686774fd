"""The model that is trained, by steps or by epochs that are XLA programs.

On a GPU, launching kernels takes most of a step of a small network. There, the
loop over steps, the gradient and the optimizer are one program. The training
table lies on the device, and the host sends row numbers.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.errors import ConfigError
from tfcomp.config.process import count_device_memory
from tfcomp.config.run_config import TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.batches import make_row_batches, make_training_table
from tfcomp.models.value_embedding import use_products

# Share of the memory of the device that the training table may fill.
SHARE = 4
# Steps of a call: it cannot be stopped, and the progress bar waits for it.
MOST_STEPS = 1000


class TrainModel(keras.Model):
    """A faster `fit`, also by whole epochs, which `to_train_model` gives.

    `fit` reads and resets the mean loss eagerly around each epoch, which is
    slow: here these calls are traced. They stay out of attributes, as
    functions of TensorFlow there would become parts of checkpoints.
    """

    # Trains an epoch and returns its logs, while `fit` is to call a program.
    run_epoch: Callable[[], dict[str, float]] | None = None
    train_function: Callable[..., Any] | None

    def make_train_function(self, force: bool = False) -> None:
        """Makes what `fit` calls for `steps_per_execution` steps."""
        run_epoch = self.run_epoch
        if run_epoch is None:
            super().make_train_function(force)
        else:
            self.train_function = lambda iterator: run_epoch()

    def reset_metrics(self) -> None:
        """Forgets the losses; a program does so itself."""
        if not tf.executing_eagerly():
            super().reset_metrics()
        elif self.run_epoch is None:
            self._reset_traced()

    def get_metrics_result(self) -> dict[str, Any]:
        """Returns the mean loss so far; a program's logs have it already."""
        if not tf.executing_eagerly():
            return super().get_metrics_result()
        if self.run_epoch is None:
            return self._read_traced()
        return {}

    @tf.function(autograph=False)
    def _reset_traced(self) -> None:
        self.reset_metrics()

    @tf.function(autograph=False)
    def _read_traced(self) -> dict[str, tf.Tensor]:
        return self.get_metrics_result()

    @tf.function(autograph=False, jit_compile=True)
    def train_epochs(
        self, rows: tf.Tensor, factors: tf.Tensor, images: tf.Tensor
    ) -> tf.Tensor:
        """Trains E epochs of K steps as one program.

        Args:
            rows: Numbers of the rows of each batch, [E, K, B].
            factors: The training table's factors, [n, F].
            images: Its images, [n, H, W, C].

        Returns:
            The mean loss of each epoch, [E].
        """
        epochs, steps = rows.shape[:2]
        strategy = self.distribute_strategy

        def train_epoch(
            epoch: tf.Tensor, losses: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.TensorArray]:
            def step(number: tf.Tensor) -> tuple[tf.Tensor]:
                chosen = rows[epoch, number]
                batch = tf.gather(factors, chosen), tf.gather(images, chosen)
                strategy.run(self.train_step, args=(batch,))
                return (number + 1,)

            self.reset_metrics()
            tf.while_loop(lambda n: n < steps, step, [tf.constant(0)])
            loss = self.get_metrics_result()["loss"]
            return epoch + 1, losses.write(epoch, loss)

        losses = tf.TensorArray(tf.float32, epochs)
        with use_products():
            _, losses = tf.while_loop(
                lambda epoch, _: epoch < epochs,
                train_epoch,
                [tf.constant(0), losses],
            )
        return losses.stack()


def to_train_model(network: keras.Model) -> TrainModel:
    """Gives a model, in place, the methods of `TrainModel` before its own.

    Its class may have a `train_step`, `call` or `compute_loss` of its own,
    which a new model of the same layers would not have.
    """
    own = type(network)
    network.__class__ = type(f"Train{own.__name__}", (TrainModel, own), {})
    assert isinstance(network, TrainModel)
    return network


def is_compiled(
    config: TrainingConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> bool:
    """Decides by `--compiled` whether epochs are programs.

    Args:
        config: The training; `auto` compiles on one GPU if possible.
        dataset: Its training images must fit the device's memory.
        strategy: Programs need a single replica.

    Raises:
        ConfigError: `--compiled=always` is impossible here.
    """
    if config.compiled == "never":
        return False

    images = 4 * len(dataset.splits.train) * math.prod(dataset.image_shape)
    replicas = strategy.num_replicas_in_sync
    problem = ""
    if replicas > 1:
        problem = f"with {replicas} replicas"
    elif SHARE * images > count_device_memory():
        problem = (
            f"where training images ({images >> 20:,} MB) fill more than a "
            "quarter of the memory of the device"
        )

    if config.compiled == "auto":
        return not problem and bool(tf.config.list_physical_devices("GPU"))
    if problem:
        rule = f"must be auto or never {problem}"
        raise ConfigError("compiled", rule, config.compiled)
    return True


def count_span(
    callbacks: Sequence[keras.callbacks.Callback], epochs: range, steps: int
) -> int:
    """Counts the epochs of one call: calls end where weights are read.

    Args:
        callbacks: Those without a method `reads_weights(done)` are taken to
            read weights after every epoch.
        epochs: The epochs that are left.
        steps: Steps of an epoch.
    """

    def always(done: int) -> bool:
        return True

    readers = [getattr(c, "reads_weights", always) for c in callbacks]

    ends = [epochs.start]
    for done in range(epochs.start + 1, epochs.stop):
        if any(reads(done) for reads in readers):
            ends.append(done)
    ends.append(epochs.stop)

    gap = math.gcd(*np.diff(ends).tolist())
    most = min(gap, max(MOST_STEPS // steps, 1))
    return max(span for span in range(1, most + 1) if gap % span == 0)


@contextlib.contextmanager
def use_program(
    model: TrainModel,
    dataset: Dataset,
    config: TrainingConfig,
    steps: int,
    first_epoch: int,
    span: int,
) -> Iterator[tf.data.Dataset]:
    """Lets `fit` train epochs as single steps by a program.

    Args:
        model: The compiled model.
        dataset: Its training table is put on the device.
        config: Has the size of batches and their seed.
        steps: Steps of an epoch.
        first_epoch: The number of epochs that are trained already.
        span: The number of epochs of one call of the program.

    Yields:
        Batches without content, for `fit` with one step an epoch.
    """
    table = make_training_table(dataset)
    factors, images = (part[:1] for part in table)
    with model.distribute_strategy.scope():  # `fit` would use row numbers
        model.compute_loss(x=factors, y=images, y_pred=images)

    batches = make_row_batches(
        dataset,
        config.batch_size,
        config.seed,
        first_epoch * steps,
        together=span * steps,
    )
    # The next rows are sampled while the program runs.
    rows = iter(batches.prefetch(1))
    shape = (span, steps, config.batch_size)
    losses: list[float] = []  # of epochs that are trained and not reported

    def run_epoch() -> dict[str, float]:
        if not losses:
            chosen = tf.reshape(next(rows), shape)
            trained = model.train_epochs(chosen, *table)
            losses.extend(trained.numpy().tolist())
        return {"loss": losses.pop(0)}

    steps_per_execution = model.steps_per_execution
    model.steps_per_execution = 1
    model.run_epoch = run_epoch
    try:
        yield tf.data.Dataset.from_tensors(0).repeat()
    finally:
        model.steps_per_execution = steps_per_execution
        model.run_epoch = None
        model.train_function = None  # holds the table
