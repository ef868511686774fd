"""A training by one replica and by two, on the halves of a CPU.

A CPU can be split only before TensorFlow uses it, in a process of its own.
"""

from pathlib import Path

import keras
import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.models import MODELS, forced_rendering
from tfcomp.training.fit import make_batches
from tfcomp.training.prepared_models import make_strategy, make_training_model

FLAGS = (
    "--flagfile=smoke.flags",
    "--grid_size=8",
    "--region=square:3-4",
    "--model=matrices",
    "--steps_per_epoch=1",
    # Steps are as long as the clipped gradient, not as its ratio to others.
    "--clip_norm=0.01",
    "--adam_epsilon=1",
    "--learning_rate=9",
)


def build(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Penalties, which must be counted once and not for each replica."""
    factors = keras.Input((2,))
    embedding = forced_rendering.LowRankEmbedding(
        num_values=8,
        size=(8, 8),
        rank=3,
        coefficient_regularizer=forced_rendering.EntropyRegularizer(0.1),
        left_regularizer=forced_rendering.VarianceRegularizer(0.05),
        right_regularizer=forced_rendering.VarianceRegularizer(0.05, "unit"),
    )
    image = embedding(factors[:, 0])
    return keras.Model(factors, image[..., None])


def train(num_replicas: int) -> dict[str, np.ndarray]:
    """The losses of ten steps, and the weights after them."""
    config = parse_config([*FLAGS, f"--num_replicas={num_replicas}"])
    data = make_dataset(config)
    strategy = make_strategy(num_replicas)
    model = make_training_model(config, data, strategy)
    fit = model.fit(
        make_batches(data, 16, 0),
        epochs=10,
        steps_per_epoch=config.training.steps_per_epoch,
        shuffle=False,
        verbose=0,
    )
    results = {"losses": np.array(fit.history["loss"])}
    for weight in model.weights:
        results[weight.name] = weight.numpy()
    return results


def write_results(folder: Path):
    """Writes `1.npz` and `2.npz`, by the number of replicas."""
    MODELS.register("matrices", build)
    for count in (2, 1):  # two of them split the CPU
        np.savez(folder / f"{count}.npz", **train(count))
