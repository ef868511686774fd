"""Cost of the low-rank embedding, as ratios that travel between machines.

    python -m benchmarks.low_rank

1. One training step of the published network (two embeddings of 32 values,
   rank 32, both penalties, AdamW, 133,218 weights) over the forward and
   backward pass of its convolutions alone. Goal: at most 1.4. What the
   penalties and the optimizer add is shown by leaving them out.
2. Forward and backward pass of the layer's batch part while the number of
   values grows from 16 to 128, at a fixed size of the rendered image (the
   cost should stay) and at size = number of values (the image itself grows).

Variants of a comparison take turns within a run, so that another process on
the machine slows all of them; medians are reported.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import keras
import tensorflow as tf

from tfcomp.config.process import keep_freed_memory
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.forced_rendering import LowRankEmbedding
from tfcomp.training.prepared_models import make_model

GRID = 32
BATCH = 32
NUM_WEIGHTS = 133_218
GOAL = 1.4
GRIDS = (16, 32, 64, 128)
FIXED_SIZE = 32
FIXED_RANK = 16


def make_convolutions() -> keras.Model:
    """The part that combines the factors: two channels to one image."""
    channels = keras.Input((GRID, GRID, 2))
    hidden = channels
    for filters in (2, 2, 1):
        hidden = keras.layers.PReLU(
            keras.initializers.Constant(0.25), shared_axes=[1, 2, 3]
        )(hidden)
        hidden = keras.layers.Conv2DTranspose(filters, 3, padding="same")(
            hidden
        )
    return keras.Model(channels, hidden)


def make_network(*flags: str) -> keras.Model:
    """The published network, as `low_rank.flags` trains it."""
    config = parse_config(["--flagfile=low_rank.flags", *flags])
    model = make_model(config, make_dataset(config), "float32")
    assert model.count_params() == NUM_WEIGHTS
    return model


def repeat_in_graph(step: Callable[[], tf.Tensor], steps: int) -> Callable:
    """A graph that runs `steps` steps, one after the other.

    Fewer calls from Python, as with `steps_per_execution`. Without the limit
    TensorFlow runs the iterations of a loop that writes no variable at the
    same time, and a forward and backward pass would look cheaper than it is
    inside a training step.
    """

    @tf.function
    def run() -> tf.Tensor:
        total = tf.zeros(())
        for _ in tf.range(steps):
            tf.autograph.experimental.set_loop_options(parallel_iterations=1)
            total += step()
        return total

    return run.get_concrete_function()


def make_training(
    steps: int, optimizer: keras.optimizers.Optimizer, *flags: str
) -> Callable[[], object]:
    """`steps` training steps of the network in one call."""
    model = make_network(*flags)
    optimizer.build(model.trainable_variables)
    factors = tf.random.uniform((BATCH, 2), 0, GRID, tf.int32)
    factors = tf.cast(factors, tf.float32)
    images = tf.random.uniform((BATCH, GRID, GRID, 1))

    def train() -> tf.Tensor:
        with tf.GradientTape() as tape:
            error = model(factors, training=True) - images
            loss = tf.reduce_mean(tf.square(error))
            loss = tf.add_n([loss, *model.losses])
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return repeat_in_graph(train, steps)


def make_convolution_pass(steps: int) -> Callable[[], object]:
    """`steps` forward and backward passes of the convolutions alone."""
    model = make_convolutions()
    channels = tf.random.normal((BATCH, GRID, GRID, 2))
    images = tf.random.uniform((BATCH, GRID, GRID, 1))

    def run() -> tf.Tensor:
        with tf.GradientTape() as tape:
            # The embeddings are trained, so the backward pass reaches the
            # channels in training too.
            tape.watch(channels)
            error = model(channels, training=True) - images
            loss = tf.reduce_mean(tf.square(error))
        sources = [channels, *model.trainable_variables]
        # Without a use of the gradients they would not be computed.
        return tf.add_n(
            [tf.reduce_sum(g) for g in tape.gradient(loss, sources)]
        )

    return repeat_in_graph(run, steps)


def make_batch_part(
    num_values: int, size: int, steps: int
) -> Callable[[], object]:
    """`steps` lookups of a batch with gradients of the rows in use."""
    layer = LowRankEmbedding(num_values, size, FIXED_RANK)
    index = tf.random.uniform((BATCH,), 0, num_values, tf.int32)
    target = tf.random.normal((BATCH, size, size))
    layer(index)

    def run() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(index) - target))
        gradients = tape.gradient(loss, layer.trainable_variables)
        # The values of the `IndexedSlices`: one row per example.
        return tf.add_n([tf.reduce_sum(g.values) for g in gradients])

    return repeat_in_graph(run, steps)


def time_interleaved(
    variants: dict[str, Callable[[], object]], repeats: int, steps: int
) -> dict[str, float]:
    """Returns the median seconds per step of every variant."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for repeat in range(repeats + 1):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            elapsed = time.perf_counter() - start
            if repeat:  # the first call warms up
                seconds[name].append(elapsed / steps)
    return {name: statistics.median(s) for name, s in seconds.items()}


def report(title: str, seconds: dict[str, float], base: str) -> None:
    """Prints milliseconds per step and the ratio to the variant `base`."""
    print(title)
    for name, value in seconds.items():
        ratio = value / seconds[base]
        print(f"  {name:<34}{1e3 * value:9.3f} ms{ratio:9.2f}")


def main() -> None:
    """Times the three comparisons and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    keep_freed_memory()  # as every training does

    rates = {"learning_rate": 1e-3, "weight_decay": 1e-4}
    plain = ("--entropy_weight=0", "--variance_weight=0")
    network = {
        "convolutions, forward + backward": make_convolution_pass(args.steps),
        "training step": make_training(
            args.steps, keras.optimizers.AdamW(**rates)
        ),
        "the same without penalties": make_training(
            args.steps, keras.optimizers.AdamW(**rates), *plain
        ),
        "without penalties, SGD": make_training(
            args.steps, keras.optimizers.SGD(1e-3), *plain
        ),
    }
    seconds = time_interleaved(network, args.repeats, args.steps)
    report(f"network, goal <= {GOAL}", seconds, next(iter(network)))
    for title, sizes in (
        (f"batch part, image {FIXED_SIZE}", [FIXED_SIZE] * len(GRIDS)),
        ("batch part, image = number of values", GRIDS),
    ):
        parts = {
            f"{values} values, {size} x {size}": make_batch_part(
                values, size, args.steps
            )
            for values, size in zip(GRIDS, sizes, strict=True)
        }
        seconds = time_interleaved(parts, args.repeats, args.steps)
        report(title, seconds, next(iter(parts)))


if __name__ == "__main__":
    main()
