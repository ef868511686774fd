"""Cost of the geometry of all stages, in plain forward passes.

Run as `python -m benchmarks.geometry`. The floor is 3: one pass for the
activations and one for each of the two factors. Forward passes and geometry
take turns in one process, so that a busy machine slows both alike.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from functools import partial

import keras
import numpy as np
import tensorflow as tf

from tfcomp.metrics.jacobians import compute_stage_metrics
from tfcomp.models.stages import BATCH_SIZE, evaluate_in_batches

GRID_SIZE = 28
WIDTH = 64
NUM_REPEATS = 7


class BumpCode(keras.layers.Layer):
    """One Gaussian of standard deviation 1 per factor, side by side."""

    def call(self, factors: tf.Tensor) -> tf.Tensor:
        centres = keras.ops.arange(GRID_SIZE, dtype="float32")
        offsets = factors[:, :, None] - centres  # [n, 2, 28]
        code = keras.ops.exp(-0.5 * offsets**2)
        return keras.ops.reshape(code, (-1, 1, 1, 2 * GRID_SIZE))


def make_decoder() -> keras.Model:
    """The depth-4, 64-wide convolution decoder, with all its stages."""
    factors = keras.Input((2,))
    h = BumpCode()(factors)
    stages = {"encoding": h}
    settings = [
        (7, 1, "valid"),
        (4, 2, "same"),
        (4, 2, "same"),
    ]
    settings += [(3, 1, "same"), (3, 1, "same")]
    for i, (kernel, strides, padding) in enumerate(settings):
        h = keras.layers.Conv2DTranspose(
            WIDTH, kernel, strides, padding, activation="relu"
        )(h)
        stages[f"conv_{i}"] = h
    stages["image"] = keras.layers.Conv2DTranspose(1, 3, padding="same")(h)
    return keras.Model(factors, stages)


def make_grid() -> np.ndarray:
    """All positions of the grid, [784, 2]."""
    axis = np.arange(GRID_SIZE, dtype=np.float32)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def time_call(fn: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def main() -> None:
    """Times both and prints medians, their ratio and the peak memory."""
    keras.utils.set_random_seed(0)
    model = make_decoder()
    grid = make_grid()
    forward = tf.function(lambda f: {"image": model(f)["image"]})
    geometry = tf.function(lambda f: compute_stage_metrics(model, f))
    seconds: dict[Callable, list[float]] = {forward: [], geometry: []}
    for repeat in range(NUM_REPEATS + 1):
        for fn, times in seconds.items():
            elapsed = time_call(partial(evaluate_in_batches, fn, grid))
            if repeat > 0:  # The first call of each is spent on tracing.
                times.append(elapsed)
    pass_time = statistics.median(seconds[forward])
    geometry_time = statistics.median(seconds[geometry])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(grid)} points, batches of {BATCH_SIZE}, {NUM_REPEATS} repeats")
    print(f"forward pass  {pass_time:6.3f} s")
    print(f"geometry      {geometry_time:6.3f} s")
    print(f"ratio         {geometry_time / pass_time:6.2f}")
    print(f"peak memory   {peak:6.2f} GiB")


if __name__ == "__main__":
    main()
