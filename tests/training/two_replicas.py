"""A process that trains by one replica and by two, on the halves of a CPU.

    python two_replicas.py FOLDER

A CPU can be split only before TensorFlow uses it. Losses and weights are
`1.npz` and `2.npz` in the folder, by the number of replicas.
"""

import sys
from pathlib import Path

import numpy as np

from tfcomp.config.process import start_tensorflow

with start_tensorflow():
    import keras

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
    "--steps_per_epoch=5",
    # Steps are as long as the clipped gradient, not as its ratio to others.
    "--clip_norm=0.01",
    "--adam_epsilon=1",
    "--learning_rate=9",
)


@MODELS.register("matrices")
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
    """The losses of two epochs, and the weights after them."""
    config = parse_config([*FLAGS, f"--num_replicas={num_replicas}"])
    data = make_dataset(config)
    strategy = make_strategy(num_replicas)
    model = make_training_model(config, data, strategy)
    fit = model.fit(
        make_batches(data, 16, 0),
        epochs=2,
        steps_per_epoch=config.training.steps_per_epoch,
        shuffle=False,
        verbose=0,
    )
    results = {"losses": np.array(fit.history["loss"])}
    for weight in model.weights:
        results[weight.name] = weight.numpy()
    return results


if __name__ == "__main__":
    for count in (2, 1):  # two of them split the CPU
        file = Path(sys.argv[1]) / f"{count}.npz"
        np.savez(file, **train(count))
