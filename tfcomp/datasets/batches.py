"""Training batches as a pure function of seed and step.

Example number e = step * batch_size + i is row pi_p(e mod n) of the table,
where p = e div n counts the passes and pi_p is a pseudo-random permutation
that depends on (seed, p) alone. (With `--balance` the table has images of rare
values several times.) So nothing is buffered, and a resumed run, with any
number of replicas, sees the same batches: full ones, which may span two passes.
"""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfcomp.datasets.dataset import Dataset

# Of the cipher that shuffles. With 4, TensorFlow's default, the numbers of
# the seed are used almost as they are: small ones leave the first pass over
# a small table nearly in order (23 of 25 rows in their place).
ROUNDS = 16
NOISE_SEED = 0  # independent of the seed of a run
# Bytes of images that are rendered once rather than for every batch.
MAX_STORED = 64 * 2**20


def make_batches(
    dataset: Dataset,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Batches of (factors [B, F], images [B, *image_shape]), with noise.

    The arguments are those of `make_row_batches`.
    """
    table = tf.constant(dataset.splits.train)
    stored = dataset.train_images
    num_bytes = 4 * len(table) * math.prod(dataset.image_shape)
    if stored is None and num_bytes <= MAX_STORED:
        with tf.device("CPU"):
            stored = dataset.render_training(np.arange(len(table)))
    if stored is not None:
        stored = tf.constant(stored)

    def make_batch(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        factors = tf.gather(table, rows)
        if stored is not None:
            images = tf.gather(stored, rows)
        elif dataset.draw_train is not None:
            images = tf.numpy_function(dataset.draw_train, [rows], tf.float32)
            images = tf.ensure_shape(images, (None, *dataset.image_shape))
        else:
            images = dataset.render(factors)
        return factors, _add_noise(images, rows, dataset.noise)

    rows = make_row_batches(dataset, batch_size, seed, first_step, num_steps)
    batches = rows.map(make_batch, num_parallel_calls=1, deterministic=True)
    return batches.prefetch(4).with_options(_do_not_tune())


def make_row_batches(
    dataset: Dataset,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Batches of rows [B] of the training table.

    The batch size B is the global one. Batches start at `first_step`. There are
    `num_steps` of them, or (None) no end.
    """
    shown = dataset.list_shown()
    end = tf.int64.max // batch_size
    if num_steps is not None:
        end = first_step + num_steps
    numbers = tf.data.Dataset.range(first_step * batch_size, end * batch_size)
    return (
        numbers.batch(batch_size, drop_remainder=True)
        .map(
            lambda n: tf.gather(shown, shuffle_numbers(n, len(shown), seed)),
            num_parallel_calls=1,
            deterministic=True,
        )
        .with_options(_do_not_tune())
    )


def make_row_sampler(
    dataset: Dataset, batch_size: int, seed: int, num_steps: int
) -> Callable[[int], tf.Tensor]:
    """Returns a function from a first step to the rows [K, B] of K steps.

    These are the batches of `make_row_batches`, computed at once.
    """
    shown = dataset.list_shown()

    @tf.function(autograph=False)
    def shuffle(first: tf.Tensor) -> tf.Tensor:
        with tf.device("CPU:0"):  # the only one that has this shuffle
            numbers = first + tf.range(num_steps * batch_size, dtype=tf.int64)
            rows = tf.gather(shown, shuffle_numbers(numbers, len(shown), seed))
            return tf.reshape(rows, [num_steps, batch_size])

    return lambda step: shuffle(tf.constant(step * batch_size, tf.int64))


def make_training_table(dataset: Dataset) -> tuple[tf.Tensor, tf.Tensor]:
    """Factors [n, F] and images [n, *image_shape], with noise, as tensors."""
    table = dataset.splits.train
    with tf.device("CPU"):
        images = dataset.render_training(np.arange(len(table)))
    images = tf.convert_to_tensor(images, tf.float32)
    rows = tf.range(len(table), dtype=tf.int64)
    noisy = _add_noise(images, rows, dataset.noise)
    return tf.constant(table, tf.float32), noisy


def _do_not_tune() -> tf.data.Options:
    """Returns options without tuning.

    There is nothing to tune, and the end of a training may wait for the tuning
    thread (see `training.strategy.give_to_devices`).
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


def _add_noise(images: tf.Tensor, rows: tf.Tensor, noise: float) -> tf.Tensor:
    """Returns images with Gaussian noise, always the same for a row [B]."""
    if not noise:
        return images

    def draw(row: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_normal(images.shape[1:], [NOISE_SEED, row])

    drawn = tf.map_fn(draw, rows, fn_output_signature=tf.float32)
    return images + noise * drawn


def shuffle_numbers(numbers: tf.Tensor, size: int, seed: int) -> tf.Tensor:
    """Returns table rows for numbers of examples, int64 [B].

    Each pass over the table has every row once.
    """
    passes = numbers // size
    zeros = tf.zeros_like(passes)
    seeds = tf.stack([zeros, zeros + seed, passes], axis=1)  # [B, 3]
    # `tf.random.experimental.index_shuffle` is this op with one seed for all
    # numbers; a batch that spans two passes needs one for each.
    return tf.raw_ops.RandomIndexShuffle(
        index=numbers % size,
        seed=seeds,
        max_index=np.int64(size - 1),
        rounds=ROUNDS,
    )
