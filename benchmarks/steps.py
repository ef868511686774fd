"""Time of a training step on any device: `python -m benchmarks.steps`.

    python -m benchmarks.steps --models=donut,mlp --compiled=never,always

Prints milliseconds a step of shipped flagfiles, as `tfcomp train` trains them
step by step (`never`) and as one program of XLA (`always`: of all epochs, as
long as nothing is evaluated in between). Other flags, such as
`--precision=mixed_bfloat16`, hold for all trainings. All take turns in one
process. XLA makes convolutions slower on a CPU, where a step of the donut takes
minutes: without a GPU only `never` is measured by default.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_flags import parse_config

if TYPE_CHECKING:
    from tfcomp.config.run_config import RunConfig

REPEATS = 3
MODELS = "donut,low_rank,hard_rendering,mlp"
Job = Callable[[], float]  # trains, returns the seconds of a step


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--compiled", default="")
    parser.add_argument(
        "--steps",
        type=int,
        default=50,
        help="of an epoch",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        default=10,
        help="that are measured, after the same number of others",
    )
    options, flags = parser.parse_known_args()
    flags.append(f"--steps_per_epoch={options.steps}")
    flags.append(f"--epochs={2 * options.epochs}")

    with start_tensorflow():
        import tensorflow as tf
    devices = tf.config.list_physical_devices("GPU")
    choices = options.compiled or "never"
    if devices:
        choices = options.compiled or "never,always"
    print(f"GPUs: {len(devices)}, {options.steps} steps an epoch")

    for name in options.models.split(","):
        jobs = {}
        for choice in choices.split(","):
            arguments = [*flags, f"--compiled={choice}"]
            config = parse_config([f"--flagfile={name}.flags", *arguments])
            jobs[choice] = make_job(config, options.epochs)
        print(f"{name:15} {measure(jobs)}", flush=True)


def measure(jobs: dict[str, Job]) -> str:
    """Runs jobs in turns; returns their median times as text."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(1 + REPEATS):
        for name, job in jobs.items():
            seconds = job()
            times[name].append(seconds)

    cells = []
    for name, (_, *repeats) in times.items():
        # The first call of a job traces and compiles.
        milliseconds = 1000 * statistics.median(repeats)
        cells.append(f"{name} {milliseconds:8.3f} ms")
    return "   ".join(cells)


def make_job(config: RunConfig, epochs: int) -> Job:
    """Makes the training of a run.

    Args:
        config: The run, of twice as many epochs as are measured.
        epochs: The number of epochs that are measured.
    """
    import keras

    from tfcomp.datasets import make_dataset
    from tfcomp.training.fit import fit_epochs
    from tfcomp.training.prepared_models import (
        make_strategy,
        make_training_model,
    )

    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    times: list[float] = []  # of begins and ends of epochs

    def add_time(epoch: int, logs: object) -> None:
        times.append(time.perf_counter())

    clock = keras.callbacks.LambdaCallback(
        on_epoch_begin=add_time,
        on_epoch_end=add_time,
    )

    def train() -> float:
        # The first epochs of a call start the data pipeline.
        times.clear()
        fit_epochs(model, dataset, config, [clock], span=epochs)
        seconds = times[-1] - times[2 * epochs]
        return seconds / epochs / config.training.steps_per_epoch

    return train


if __name__ == "__main__":
    main()
