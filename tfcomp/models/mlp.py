"""Fully connected decoder (appendices D and F.3)."""

from __future__ import annotations

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_encoding


def make_mlp(
    encoding: keras.layers.Layer,
    num_factors: int,
    image_shape: tuple[int, int, int],
    depth: int = 3,
    width: int = 256,
) -> keras.Model:
    """`depth` ReLU layers of `width` units and a linear layer of pixels.

    Args:
        encoding: Layer from factors to the code.
        num_factors: Number of factors F.
        image_shape: Rows, columns, channels.
        depth: Hidden layers, at least 1.
        width: Units of each.

    Returns:
        Model from `factors` [n, F] to `image` [n, *image_shape], float32.
    """
    factors = keras.Input((num_factors,), dtype="float32", name="factors")
    hidden = encoding(factors)
    for index in range(depth):
        hidden = keras.layers.Dense(
            width, activation="relu", name=f"stage_{index}"
        )(hidden)
    rows, columns, channels = image_shape
    pixels = keras.layers.Dense(
        rows * columns * channels, dtype="float32", name="pixels"
    )(hidden)
    image = keras.layers.Reshape(image_shape, dtype="float32", name="image")(
        pixels
    )
    return keras.Model(factors, image, name="mlp")


def build_mlp(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The MLP of a run."""
    return make_mlp(
        make_encoding(config, dataset.space),
        len(dataset.space),
        dataset.image_shape,
        config.model.depth,
        config.model.width,
    )
