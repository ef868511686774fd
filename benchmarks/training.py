"""Training speed: `python -m benchmarks.training`.

Prints, measured in turn in one process so that the ratios hold on a shared
machine,

    the rate of a 4096 x 4096 float32 matrix product,
    the rate of training steps of the donut CNN, as a share of it,
    the time of a step in mixed bfloat16 over that in float32,

and the time from the command to the end of the first training step.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import tensorflow as tf  # noqa: E402

from tfcomp.config.run_config import (
    RunConfig,  # noqa: E402
    make_config,  # noqa: E402
)
from tfcomp.config.run_flags import parse_config  # noqa: E402
from tfcomp.datasets import make_dataset  # noqa: E402
from tfcomp.training.callbacks import EpochTimer  # noqa: E402
from tfcomp.training.fit import make_batches  # noqa: E402
from tfcomp.training.prepared_models import (
    make_strategy,  # noqa: E402
    make_training_model,  # noqa: E402
)

SIZE = 4096
STEPS = 25
EPOCHS = 4
REPEATS = 5


def main() -> None:
    """Measures and prints."""
    product = make_product()
    config = parse_config(["--flagfile=donut.flags"])
    flops = count_step_flops(config)
    trainers = {
        precision: make_trainer(config, precision)
        for precision in ("float32", "mixed_bfloat16")
    }
    jobs = {"product": product, **trainers}
    seconds = measure(jobs, REPEATS)
    peak = 2 * SIZE**3 / seconds["product"]
    rate = flops * STEPS / seconds["float32"]
    print(f"matrix product     {peak / 1e9:8.1f} GFLOP/s")
    print(f"training, float32  {rate / 1e9:8.1f} GFLOP/s")
    print(f"share of product   {rate / peak:8.2f}   (goal: at least 0.85)")
    ratio = seconds["float32"] / seconds["mixed_bfloat16"]
    print(f"float32 / bfloat16 {ratio:8.2f}   (goal: at least 1.5)")
    print(f"first step after   {measure_start():8.1f} s (goal: under 15)")


def make_product() -> Callable[[], float]:
    """One large matrix product."""
    left = tf.random.normal((SIZE, SIZE))
    right = tf.random.normal((SIZE, SIZE))
    multiply = tf.function(lambda: tf.reduce_sum(tf.linalg.matmul(left, right)))

    def run() -> float:
        start = time.perf_counter()
        multiply().numpy()
        return time.perf_counter() - start

    return run


def make_trainer(config: RunConfig, precision: str) -> Callable[[], float]:
    """Seconds of an epoch of `STEPS` steps with Keras `fit`, as in a run."""
    flags = {
        **config.to_flags(),
        "precision": precision,
        "steps_per_epoch": STEPS,
    }
    config = make_config(flags)
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    batches = make_batches(dataset, config.training.batch_size, seed=0)

    def train() -> float:
        # Every call of `fit` starts a data pipeline, which can take half a
        # second; a run does that once. So the epochs inside are timed.
        recorder = Recorder()
        model.fit(
            batches,
            epochs=EPOCHS,
            steps_per_epoch=STEPS,
            shuffle=False,
            verbose=0,
            callbacks=[EpochTimer(), recorder],
        )
        return statistics.median(recorder.seconds[1:])

    return train


class Recorder(keras.callbacks.Callback):
    """Collects the time of the training steps of every epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.seconds.append((logs or {})["seconds"])


def count_step_flops(config: RunConfig) -> int:
    """Operations of a training step: three times the forward convolutions.

    A transposed convolution multiplies every input pixel with its kernel:
    2 * pixels * kernel size operations. The backward pass computes two
    products of that size (for the input and for the kernel).
    """
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    forward = 0
    for layer in model.layers:
        if isinstance(layer, keras.layers.Conv2DTranspose):
            pixels = layer.input.shape[1] * layer.input.shape[2]
            kernel = 1
            for side in layer.kernel.shape:
                kernel *= side
            forward += 2 * pixels * kernel
    return 3 * forward * config.training.batch_size


def measure(
    jobs: dict[str, Callable[[], float]], repeats: int
) -> dict[str, float]:
    """Median of what each job measures; the jobs take turns."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            times[name].append(job())
    return {name: statistics.median(values) for name, values in times.items()}


def measure_start() -> float:
    """Seconds from the command to the checkpoint after the first step."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "tfcomp.train", "--flagfile=donut.flags",
            f"--log_dir={folder}", f"--export_dir={folder}/export",
            "--steps_per_epoch=1", "--epochs=1000", "--eval_every=0",
            "--layerwise_every=0", "--checkpoint_seconds=0",
        ]  # fmt: skip
        start = time.perf_counter()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        checkpoints = Path(folder) / "donut" / "checkpoints"
        while not list(checkpoints.glob("*.index")):
            if process.poll() is not None:
                raise RuntimeError("the training command failed")
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        process.kill()
        process.wait()
    return seconds


if __name__ == "__main__":
    main()
