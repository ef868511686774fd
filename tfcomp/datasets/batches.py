"""Training batches as a pure function of seed and step.

Example number e = step * batch_size + i is row pi_p(e mod n) of the table,
where p = e div n counts the passes and pi_p is a pseudo-random permutation
that depends on (seed, p) alone. (With `--correlation` or `--balance` a pass has
images several times.) So a resumed run sees the same batches.
"""

import math

import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.datasets.dataset import Dataset

# Of the cipher that shuffles. TensorFlow's default, 4, leaves the first pass
# over a small table nearly in order for small seeds.
ROUNDS = 16
MAX_STORED = 64 * 2**20  # bytes of images that are rendered only once
# AutoGraph parses the source of all that a function calls.
skip_autograph = tf.autograph.experimental.do_not_convert


def make_batches(
    dataset: Dataset,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Makes batches of factors [B, F] and images [B, *image_shape].

    Args:
        dataset: Has the training table, the renderer and the noise.
        batch_size: Examples of a batch, B.
        seed: The seed of the run, which shuffles.
        first_step: The number of batches that are left out, where a run goes
            on.
        num_steps: The number of batches; by default they do not end.
    """
    table = tf.constant(dataset.splits.train)
    num_pixels = math.prod(dataset.image_shape)
    num_bytes = 4 * num_pixels * len(table)
    stored = None
    if num_bytes <= MAX_STORED:
        every_image = _render_all(dataset)
        stored = tf.constant(every_image)

    def make_batch(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Looks up factors [B, F], and renders images unless stored."""
        factors = tf.gather(table, rows)
        if stored is None:
            images = _render_rows(dataset, rows, factors)
        else:
            images = tf.gather(stored, rows)
        noisy = _add_noise(images, rows, dataset.noise)
        return factors, noisy

    if stored is not None:  # a renderer of users may need it
        make_batch = skip_autograph(make_batch)
    rows = make_row_batches(
        dataset,
        batch_size,
        seed,
        first_step,
        num_steps,
    )
    batches = rows.map(
        make_batch,
        num_parallel_calls=1,
        deterministic=True,
    )
    return batches.prefetch(4)


def _render_rows(
    dataset: Dataset,
    rows: tf.Tensor,
    factors: tf.Tensor,
) -> tf.Tensor:
    """Renders rows of the training table, [B, *image_shape].

    Args:
        dataset: Has the renderer, or the images of each row.
        rows: Rows of the training table, [B].
        factors: Their factor values, [B, F].
    """
    if dataset.draw_train is None:
        return dataset.render(factors)
    images = tf.numpy_function(
        dataset.draw_train,
        inp=[rows],
        Tout=tf.float32,
    )
    shape = (None, *dataset.image_shape)
    return tf.ensure_shape(images, shape)


def make_row_batches(
    dataset: Dataset,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
    together: int = 1,
) -> tf.data.Dataset:
    """Makes batches of rows of the training table, as `make_batches` does.

    Args:
        dataset: Has the training table.
        batch_size: Examples of a batch, B.
        seed: The seed of the run, which shuffles.
        first_step: The number of batches that are left out.
        num_steps: The number of batches; by default they do not end.
        together: The number of steps K whose rows are one element, [K B].
    """
    num_train = len(dataset.splits.train)
    pass_rows = dataset.pass_rows
    if pass_rows is None:
        pass_rows = np.arange(num_train)

    size = batch_size * together
    start = first_step * batch_size
    end = tf.int64.max - size
    if num_steps is not None:
        end = start + num_steps * batch_size

    def choose(first: tf.Tensor) -> tf.Tensor:
        steps = tf.range(size, dtype=tf.int64)
        numbers = first + steps
        places = shuffle_numbers(numbers, len(pass_rows), seed)
        return tf.gather(pass_rows, places)

    starts = tf.data.Dataset.range(start, end, size)
    rows = starts.map(
        skip_autograph(choose),
        num_parallel_calls=1,
        deterministic=True,
    )
    # The end of a training may wait for the tuning thread.
    options = tf.data.Options()
    options.autotune.enabled = False
    return rows.with_options(options)


def make_training_table(dataset: Dataset) -> tuple[tf.Tensor, tf.Tensor]:
    """Factors [n, F] and images [n, *image_shape], with noise, as tensors."""
    train = dataset.splits.train
    factors = tf.constant(train, tf.float32)
    every_image = _render_all(dataset)
    images = tf.convert_to_tensor(every_image, tf.float32)

    rows = tf.range(len(train), dtype=tf.int64)
    noisy = _add_noise(images, rows, dataset.noise)
    return factors, noisy


def _render_all(dataset: Dataset) -> Array:
    count = len(dataset.splits.train)
    rows = np.arange(count)
    with tf.device("CPU"):
        return dataset.render_training(rows)


def _add_noise(
    images: tf.Tensor,
    rows: tf.Tensor,
    noise: float,
) -> tf.Tensor:
    """Returns images with Gaussian noise, always the same for a row [B]."""
    if not noise:
        return images
    shape = images.shape[1:]

    def sample(row: tf.Tensor) -> tf.Tensor:
        # The seed 0 is independent of the seed of a run.
        seed = [0, row]
        return tf.random.stateless_normal(shape, seed)

    normal = tf.map_fn(
        sample,
        elems=rows,
        fn_output_signature=tf.float32,
    )
    return images + noise * normal


def shuffle_numbers(
    numbers: tf.Tensor,
    size: int,
    seed: int,
) -> tf.Tensor:
    """Returns rows for numbers of examples, each row once a pass.

    Args:
        numbers: Numbers of examples of a training, int64 [B].
        size: The number of rows of a pass.
        seed: The seed of the run.
    """
    passes = numbers // size
    zeros = tf.zeros_like(passes)
    columns = [zeros, zeros + seed, passes]
    seeds = tf.stack(columns, axis=1)  # [B, 3]
    # `tf.random.experimental.index_shuffle` is this op with one seed for all
    # numbers; a batch that spans two passes needs one for each.
    return tf.raw_ops.RandomIndexShuffle(
        index=numbers % size,
        seed=seeds,
        max_index=np.int64(size - 1),
        rounds=ROUNDS,
    )
