"""Time of a training step on any device: `python -m benchmarks.steps`.

    python -m benchmarks.steps --models=donut,mlp --compiled=never,always

Prints milliseconds a step of shipped flagfiles, as `tfcomp train` trains them
step by step (`never`) and as one program of XLA (`always`: of all epochs, as
long as nothing is evaluated in between), and, where PyTorch is installed, of
the same networks written plainly and run eagerly. Other flags, such as
`--precision=mixed_bfloat16`, hold for all trainings of tfcomp. All take turns
in one process. XLA makes convolutions slower on a CPU, where a step of the
donut takes minutes: without a GPU only `never` is measured by default.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_flags import parse_config

if TYPE_CHECKING:
    import torch

    from tfcomp.config.run_config import ModelConfig, RunConfig

REPEATS = 3
MODELS = "donut,low_rank,hard_rendering,mlp"
IN_TORCH = ("donut", "mlp")
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
    device = "cpu"
    choices = options.compiled or "never"
    if tf.config.list_physical_devices("GPU"):
        device = "cuda"
        choices = options.compiled or "never,always"
    print(f"device: {device}, {options.steps} steps an epoch")

    for name in options.models.split(","):
        jobs = {}
        for choice in choices.split(","):
            arguments = [*flags, f"--compiled={choice}"]
            config = parse_config([f"--flagfile={name}.flags", *arguments])
            jobs[choice] = make_job(config, options.epochs)
        if importlib.util.find_spec("torch") and name in IN_TORCH:
            jobs["PyTorch"] = make_torch_job(config, device)
        print(f"{name:15} {measure(jobs)}", flush=True)


def measure(jobs: dict[str, Job]) -> str:
    """Runs jobs in turns; returns their median times as text."""
    for job in jobs.values():
        job()  # traces and compiles
    times: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        for name, job in jobs.items():
            seconds = job()
            times.setdefault(name, []).append(seconds)

    cells = []
    for name, repeats in times.items():
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


def make_torch_job(config: RunConfig, device: str) -> Job:
    """Makes the training of the same network, written plainly in PyTorch.

    Args:
        config: The run.
        device: `cpu` or `cuda`.
    """
    import torch

    side = config.data.grid_size
    batch = config.training.batch_size
    steps = config.training.steps_per_epoch
    network = make_torch_network(config.model, side).to(device)
    rng = np.random.default_rng(0)
    codes = rng.random((steps, batch, 2 * side), np.float32)
    images = rng.random((steps, batch, side**2), np.float32)
    inputs = torch.tensor(codes, device=device)
    targets = torch.tensor(images, device=device)
    network(inputs[0])  # lazy layers get their sizes
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=config.training.learning_rate,
        weight_decay=config.training.weight_decay,
    )

    def train() -> float:
        start = time.perf_counter()
        for code, image in zip(inputs, targets, strict=True):
            optimizer.zero_grad()
            output = network(code).reshape(batch, -1)
            squares = torch.square(output - image)
            loss = squares.mean()
            loss.backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        return seconds / steps

    return train


def make_torch_network(model: ModelConfig, side: int) -> torch.nn.Module:
    """Makes the CNN of `decoders.convolutional`, or the MLP.

    Args:
        model: The settings of the network.
        side: Rows and columns of images; codes have twice as many units.
    """
    from torch import nn

    width = model.width
    num_pixels = side**2
    if model.model == "mlp":
        layers: list[nn.Module] = []
        for _ in range(model.depth):
            layers.append(nn.LazyLinear(width))
            layers.append(nn.ReLU())
        layers.append(nn.LazyLinear(num_pixels))
        return nn.Sequential(*layers)

    quarter = side // 4
    layers = [
        nn.Unflatten(1, (2 * side, 1, 1)),
        nn.LazyConvTranspose2d(width, quarter),
        nn.ReLU(),
    ]
    for number in range(model.depth):
        kernel_size = 3
        stride = 1
        if number < 2:  # it doubles rows and columns
            kernel_size = 4
            stride = 2
        convolve = nn.LazyConvTranspose2d(
            width,
            kernel_size,
            stride,
            padding=1,
        )
        layers.append(convolve)
        layers.append(nn.ReLU())
    draw = nn.LazyConvTranspose2d(1, kernel_size=3, padding=1)
    layers.append(draw)
    return nn.Sequential(*layers)


if __name__ == "__main__":
    main()
