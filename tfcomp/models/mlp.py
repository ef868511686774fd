"""Fully connected decoder (appendices D and F.3)."""

import math

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code


def build_mlp(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` ReLU layers of `--width` units and a linear layer of pixels."""
    shape = dataset.image_shape
    factors, hidden = make_code(config, dataset)
    for index in range(config.model.depth):
        hidden = keras.layers.Dense(
            config.model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    pixels = keras.layers.Dense(
        math.prod(shape), dtype="float32", name="pixels"
    )(hidden)
    image = keras.layers.Reshape(shape, dtype="float32", name="image")(pixels)
    return keras.Model(factors, image, name="mlp")
