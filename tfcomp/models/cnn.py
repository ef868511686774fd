"""Transposed-convolution decoder (section 3.1, appendix D)."""

from __future__ import annotations

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_encoding


def make_cnn(
    encoding: keras.layers.Layer,
    num_factors: int,
    grid_size: int,
    depth: int = 4,
    width: int = 64,
) -> keras.Model:
    """The published CNN.

    One transposed convolution draws the code on grid/4 x grid/4 pixels, two
    of stride 2 double that, the rest of `depth` keeps the size; each has
    `width` channels and a ReLU. A last one, linear, makes the image: depth
    + 2 in all. With a bump code, width 64 and depth 2, 3 or 4 there are
    307,457, 344,385 or 381,313 weights.

    Args:
        encoding: Layer from factors to the code.
        num_factors: Number of factors F.
        grid_size: Pixels along a side, a multiple of 4.
        depth: Layers between the first stage and the image, at least 2.
        width: Channels of every hidden layer.

    Returns:
        Model from `factors` [n, F] to `image` [n, N, N, 1] in float32.
    """
    factors = keras.Input((num_factors,), dtype="float32", name="factors")
    code = encoding(factors)
    units = keras.layers.Reshape((1, 1, code.shape[-1]))(code)
    hidden = keras.layers.Conv2DTranspose(
        width, grid_size // 4, activation="relu", name="stage_0"
    )(units)
    for index in range(1, depth + 1):
        doubles = index <= 2
        hidden = keras.layers.Conv2DTranspose(
            width,
            kernel_size=4 if doubles else 3,
            strides=2 if doubles else 1,
            padding="same",
            activation="relu",
            name=f"stage_{index}",
        )(hidden)
    image = keras.layers.Conv2DTranspose(
        1, 3, padding="same", dtype="float32", name="image"
    )(hidden)
    return keras.Model(factors, image, name="cnn")


def build_cnn(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The CNN of a run."""
    return make_cnn(
        make_encoding(config, dataset.space),
        len(dataset.space),
        config.data.grid_size,
        config.model.depth,
        config.model.width,
    )
