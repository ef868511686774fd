"""The training steps of an epoch as one XLA program.

On a GPU, launching kernels takes most of a step of a small network. Here the
loop over steps, the gradient and the optimizer are one program. The training
table lies on the device, and the host sends row numbers. Keras `fit`, its
callbacks, checkpoints and the order of batches are the same as in `fit`.

XLA makes convolutions slower on a CPU, so this is for GPUs.
"""

import itertools
import math

import keras
import tensorflow as tf

from tfcomp.config.errors import ConfigError
from tfcomp.config.machine import count_memory
from tfcomp.config.training_config import TrainingConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.batches import make_row_sampler, make_training_table
from tfcomp.models.value_embedding import use_products
from tfcomp.training.strategy import give_to_devices

# Share of the memory of the device that the training table may fill.
SHARE = 4


def is_compiled(
    config: TrainingConfig, dataset: Dataset, strategy: tf.distribute.Strategy
) -> bool:
    """Checks whether the steps of an epoch run as one program (`--compiled`).

    Raises:
        ConfigError: `always` is impossible here.
    """
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


def count_device_memory() -> int:
    """Returns the bytes that TensorFlow may use on the first GPU, or here."""
    if not tf.config.list_physical_devices("GPU"):
        return count_memory()
    from tensorflow.python.client import device_lib

    devices = device_lib.list_local_devices()
    return max(d.memory_limit for d in devices if d.device_type == "GPU")


def fit_compiled(
    model: keras.Model,
    dataset: Dataset,
    config: TrainingConfig,
    steps: int,
    first_epoch: int,
    callbacks: list[keras.callbacks.Callback],
) -> None:
    """Trains a compiled model, each epoch of `steps` steps as one program.

    A second call with the same model and equal shapes compiles nothing.
    """
    strategy = model.distribute_strategy
    table = make_training_table(dataset)
    _build_loss(model, table)
    program = getattr(model, "_tfcomp_program", None) or make_program(model)
    model._tfcomp_program = program

    sample = make_row_sampler(dataset, config.batch_size, config.seed, steps)
    epochs = itertools.count(first_epoch)

    def train_epoch(_: tf.data.Iterator) -> dict[str, tf.Tensor]:
        return program(sample(next(epochs) * steps), *table)

    # `fit` wants batches. The rows of an epoch are sampled at once instead.
    ignored = tf.data.Dataset.from_tensors(0).repeat()
    before = model.steps_per_execution, model.train_function
    model.steps_per_execution, model.train_function = 1, train_epoch
    try:
        model.fit(
            give_to_devices(ignored, strategy),
            epochs=config.epochs,
            initial_epoch=first_epoch,
            steps_per_epoch=1,  # an epoch is one call of `train_epoch`
            shuffle=False,
            verbose=0,
            callbacks=callbacks,
        )
    finally:
        model.steps_per_execution, model.train_function = before


def make_program(
    model: keras.Model, jit_compile: bool = True
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a function that trains on rows [K, B] of a training table.

    Its arguments are the rows and the table: factors [n, F] and images
    [n, H, W, C]. It returns the metrics of the model.
    """
    strategy = model.distribute_strategy

    def train(
        rows: tf.Tensor, factors: tf.Tensor, images: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        def step(number: tf.Tensor) -> tuple[tf.Tensor]:
            batch = tf.gather(factors, rows[number])
            truth = tf.gather(images, rows[number])
            strategy.run(model.train_step, args=((batch, truth),))
            return (number + 1,)

        count = tf.shape(rows)[0]
        with use_products():
            tf.while_loop(lambda n: n < count, step, [tf.constant(0)])
        return model.get_metrics_result()

    return tf.function(train, autograph=False, jit_compile=jit_compile)


def _build_loss(model: keras.Model, table: tuple[tf.Tensor, tf.Tensor]) -> None:
    """Builds the loss: `fit` would build it from row numbers."""
    factors, images = (part[:1] for part in table)
    with model.distribute_strategy.scope():
        model.compute_loss(x=factors, y=images, y_pred=model(factors))
