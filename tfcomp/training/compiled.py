"""The training steps of one or more epochs as one XLA program, for GPUs.

There, launching kernels takes most of a step of a small network. The loop over
steps, the gradient and the optimizer are one program. The training table lies
on the device, and the host sends row numbers.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence

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


def is_compiled(
    config: TrainingConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> bool:
    """Applies `--compiled`; ConfigError if `always` is impossible here."""
    if config.compiled == "never":
        return False
    images = 4 * len(dataset.splits.train) * math.prod(dataset.image_shape)
    problem = ""
    if (replicas := strategy.num_replicas_in_sync) > 1:
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
    """Returns the epochs of one call: up to where a callback reads weights."""
    readers = [
        getattr(c, "reads_weights", lambda done: True) for c in callbacks
    ]
    ends = [
        done
        for done in range(epochs.start + 1, epochs.stop + 1)
        if done == epochs.stop or any(reads(done) for reads in readers)
    ]
    gap = math.gcd(*np.diff([epochs.start, *ends]).tolist())
    most = max(MOST_STEPS // steps, 1)
    return max(n for n in range(1, min(most, gap) + 1) if not gap % n)


@contextlib.contextmanager
def use_program(
    model: keras.Model,
    dataset: Dataset,
    config: TrainingConfig,
    steps: int,
    first_epoch: int,
    span: int,
) -> Iterator[tf.data.Dataset]:
    """Lets `fit` train epochs as single steps, `span` of them by one call."""
    table = make_training_table(dataset)
    factors, images = (part[:1] for part in table)
    with model.distribute_strategy.scope():  # `fit` would use row numbers
        model.compute_loss(x=factors, y=images, y_pred=images)
    program = getattr(model, "_tfcomp_program", None) or make_program(model)
    model._tfcomp_program = program

    shape, first = (span, steps, config.batch_size), first_epoch * steps
    batches = make_row_batches(
        dataset, shape[-1], config.seed, first, together=span * steps
    )
    # The next rows are sampled while the program runs.
    rows = iter(batches.prefetch(1))
    losses: list[float] = []  # of epochs that are trained and not reported

    def train_epoch(_: tf.data.Iterator) -> dict[str, float]:
        if not losses:
            chosen = tf.reshape(next(rows), shape)
            losses.extend(program(chosen, *table).numpy().tolist())
        return {"loss": losses.pop(0)}

    before = model.steps_per_execution, model.train_function
    model.steps_per_execution, model.train_function = 1, train_epoch
    # The program does both. On mirrored variables they take longer than it.
    model.reset_metrics, model.get_metrics_result = lambda: None, dict
    try:
        yield tf.data.Dataset.from_tensors(0).repeat()
    finally:
        model.steps_per_execution, model.train_function = before
        del model.reset_metrics, model.get_metrics_result


def make_program(
    model: keras.Model, jit_compile: bool = True
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a function that trains on rows [E, K, B] of E epochs of K steps.

    They are rows of factors [n, F] and images [n, H, W, C]; it returns the mean
    loss of each epoch, [E].
    """
    strategy = model.distribute_strategy
    kind = type(model)  # `use_program` replaces methods of the model

    def train(
        rows: tf.Tensor, factors: tf.Tensor, images: tf.Tensor
    ) -> tf.Tensor:
        epochs, steps = rows.shape[:2]

        def train_epoch(
            epoch: tf.Tensor, losses: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.TensorArray]:
            def step(number: tf.Tensor) -> tuple[tf.Tensor]:
                chosen = rows[epoch, number]
                batch = tf.gather(factors, chosen), tf.gather(images, chosen)
                strategy.run(model.train_step, args=(batch,))
                return (number + 1,)

            kind.reset_metrics(model)
            tf.while_loop(lambda n: n < steps, step, [tf.constant(0)])
            loss = kind.get_metrics_result(model)["loss"]
            return epoch + 1, losses.write(epoch, loss)

        losses = tf.TensorArray(tf.float32, epochs)
        with use_products():
            _, losses = tf.while_loop(
                lambda epoch, _: epoch < epochs,
                train_epoch,
                [tf.constant(0), losses],
            )
        return losses.stack()

    return tf.function(train, autograph=False, jit_compile=jit_compile)
