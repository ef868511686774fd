"""Time of a training step on any device: `python -m benchmarks.steps`.

    python -m benchmarks.steps --models=donut,mlp --compiled=never,always

Prints milliseconds a step of shipped flagfiles, as `tfcomp train` trains them
step by step (`never`) and as one program of XLA (`always`: of all epochs, as
long as nothing is evaluated in between), and, where PyTorch is installed, of
the same networks written plainly and run eagerly. All take turns in one
process. XLA makes convolutions slower on a CPU, where a step of
the donut takes minutes: without a GPU only `never` is measured by default.
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

    from tfcomp.config.run_config import ModelConfig

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
    text = "that are measured, after the same number of others"
    parser.add_argument(
        "--epochs",
        type=int,
        default=10,
        help=text,
    )
    options = parser.parse_args()
    steps, epochs = options.steps, options.epochs
    with start_tensorflow():
        import tensorflow as tf
    gpus = tf.config.list_physical_devices("GPU")
    choices = (options.compiled or ("never,always" if gpus else "never")).split(
        ","
    )
    print(f"device: {'GPU' if gpus else 'CPU'}, {steps} steps an epoch")
    for name in options.models.split(","):
        jobs = {c: make_job(name, c, steps, epochs) for c in choices}
        if importlib.util.find_spec("torch") and name in ("donut", "mlp"):
            jobs["PyTorch"] = make_torch_job(name, bool(gpus), steps)
        for job in jobs.values():
            job()  # traces and compiles
        seconds: dict[str, list[float]] = {choice: [] for choice in jobs}
        for _ in range(REPEATS):
            for choice, job in jobs.items():
                seconds[choice].append(job())
        cells = (
            f"{choice} {1000 * statistics.median(found):8.3f} ms"
            for choice, found in seconds.items()
        )
        print(f"{name:15} {'   '.join(cells)}")


def make_job(name: str, compiled: str, steps: int, epochs: int) -> Job:
    """Trains a shipped flagfile."""
    import keras

    from tfcomp.datasets import make_dataset
    from tfcomp.training.fit import fit_epochs
    from tfcomp.training.prepared_models import (
        make_strategy,
        make_training_model,
    )

    config = parse_config(
        [
            f"--flagfile={name}.flags",
            f"--steps_per_epoch={steps}",
            f"--epochs={2 * epochs}",
            f"--compiled={compiled}",
        ]
    )
    dataset = make_dataset(config)
    model = make_training_model(config, dataset, make_strategy())
    times: list[float] = []  # of begins and ends of epochs
    clock = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: times.append(time.perf_counter()),
        on_epoch_end=lambda epoch, logs: times.append(time.perf_counter()),
    )

    def train() -> float:
        # The first epochs of a call start the data pipeline.
        times.clear()
        fit_epochs(
            model,
            dataset,
            config,
            [clock],
            span=epochs,
        )
        return (times[-1] - times[2 * epochs]) / epochs / steps

    return train


def make_torch_job(name: str, on_gpu: bool, steps: int) -> Job:
    """Trains the same network, written plainly in PyTorch."""
    import torch

    config = parse_config([f"--flagfile={name}.flags"])
    device = "cuda" if on_gpu else "cpu"
    side, batch = config.data.grid_size, config.training.batch_size
    network = make_torch_network(config.model, side).to(device)
    optimizer = torch.optim.AdamW(
        network.parameters(),
        lr=config.training.learning_rate,
        weight_decay=config.training.weight_decay,
    )
    rng = np.random.default_rng(0)
    codes = rng.random((steps, batch, 2 * side), np.float32)
    images = rng.random((steps, batch, side**2), np.float32)
    codes, images = (torch.tensor(a, device=device) for a in (codes, images))

    def train() -> float:
        start = time.perf_counter()
        for code, image in zip(codes, images, strict=True):
            optimizer.zero_grad()
            output = network(code).reshape(batch, -1)
            loss = torch.mean((output - image) ** 2)
            loss.backward()
            optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps

    return train


def make_torch_network(model: ModelConfig, side: int) -> torch.nn.Module:
    """The CNN of `decoders.cnn`, or the MLP, of codes [B, 2 sides]."""
    from torch import nn

    if model.model == "mlp":
        sizes = [2 * side] + [model.width] * model.depth
        layers: list[nn.Module] = []
        for inputs, outputs in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], side**2))
    width = model.width
    first = nn.ConvTranspose2d(2 * side, width, side // 4)
    layers = [
        nn.Unflatten(1, (2 * side, 1, 1)),
        first,
        nn.ReLU(),
    ]
    for number in range(model.depth):
        shape = (4, 2, 1) if number < 2 else (3, 1, 1)
        layers += [
            nn.ConvTranspose2d(width, width, *shape),
            nn.ReLU(),
        ]
    return nn.Sequential(
        *layers,
        nn.ConvTranspose2d(
            width,
            1,
            3,
            1,
            1,
        ),
    )


if __name__ == "__main__":
    main()
