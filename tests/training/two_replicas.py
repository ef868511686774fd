"""A process with two replicas on one CPU: batches, losses, a layer.

    python two_replicas.py FOLDER

A CPU can be split only before TensorFlow uses it, so that each of these would
take a process of its own. Results are `1.npz` and `2.npz` in the folder, by the
number of replicas.
"""

import contextlib
import sys
from pathlib import Path

import numpy as np

from tfcomp.config.process import start_tensorflow

with start_tensorflow():
    import keras
    import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.forced_rendering import (
    EntropyRegularizer,
    LowRankEmbedding,
    VarianceRegularizer,
)
from tfcomp.training.fit import make_batches
from tfcomp.training.prepared_models import make_strategy, make_training_model

SMOKE = ("--flagfile=smoke.flags", "--grid_size=8", "--region=square:3-4")
SMOKE = (*SMOKE, "--model=mlp", "--depth=1", "--width=4")
SMOKE = (*SMOKE, "--steps_per_epoch=10")


def train_smoke(strategy: tf.distribute.Strategy) -> list[float]:
    """The losses of two epochs."""
    count = strategy.num_replicas_in_sync
    # Steps are as long as the clipped gradient, not as its ratio to others.
    clipped = ("--clip_norm=0.01", "--adam_epsilon=1", "--learning_rate=9")
    config = parse_config([*SMOKE, *clipped, f"--num_replicas={count}"])
    data = make_dataset(config)
    model = make_training_model(config, data, strategy)
    history = model.fit(
        make_batches(data, 16, 0),
        epochs=2,
        steps_per_epoch=config.training.steps_per_epoch,
        shuffle=False,
        verbose=0,
    )
    return history.history["loss"]


def train_layer(scope: contextlib.AbstractContextManager) -> dict:
    """Losses and weights of a low-rank embedding with all its penalties."""
    keras.utils.set_random_seed(0)
    with scope:
        index = keras.Input((), dtype="int32")
        image = LowRankEmbedding(
            *(5, 4, 3),
            coefficient_regularizer=EntropyRegularizer(0.1),
            left_regularizer=VarianceRegularizer(0.05),
            right_regularizer=VarianceRegularizer(0.05, "unit"),
        )(index)
        model = keras.Model(index, image)
        model.compile(keras.optimizers.SGD(0.1), "mse")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, size=16).astype("int32")
    y = rng.normal(size=(16, 4, 4)).astype("float32")
    fit = model.fit(
        x,
        y,
        batch_size=8,
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    losses = {"layer_losses": fit.history["loss"]}
    weights = model.get_weights()
    return losses | {f"layer_{n}": w for n, w in enumerate(weights)}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    two = make_strategy(2)  # splits the CPU
    arrays = {
        "losses": train_smoke(two),
        **train_layer(two.scope()),
    }
    np.savez(folder / "2.npz", **arrays)
    one = make_strategy(1)
    arrays = {
        "losses": train_smoke(one),
        **train_layer(contextlib.nullcontext()),
    }
    np.savez(folder / "1.npz", **arrays)
