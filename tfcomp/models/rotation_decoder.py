"""Decoder of rotated digits (appendix F.2, figure 9)."""

import math

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code


def build_rotation(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The published network of rotated digits.

    A dense layer draws the code on a quarter of the image's rows and
    columns with 2 `--width` channels; two transposed convolutions of kernel
    4 and stride 2 double that, to 2 `--width` and then to `--width`
    channels, each with batch normalization and a ReLU; a convolution of
    kernel 3 and a sigmoid make the image. These are the layers that have
    exactly the published number of trained weights: 406,913 with a scalar
    input, an image of 28 x 28 and width 64 (413,185 with cos and sin).

    Momentum and epsilon of the normalization are those of PyTorch, in which
    it was published.
    """
    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)
    first = (rows // 4, columns // 4, 2 * width)
    hidden = keras.layers.Dense(
        math.prod(first), activation="relu", name="dense"
    )(code)
    hidden = keras.layers.Reshape(first, name="stage_0")(hidden)
    for index, filters in enumerate((2 * width, width), start=1):
        hidden = keras.layers.Conv2DTranspose(
            filters, 4, strides=2, padding="same", name=f"double_{index}"
        )(hidden)
        hidden = keras.layers.BatchNormalization(
            momentum=0.9, epsilon=1e-5, name=f"normalize_{index}"
        )(hidden)
        hidden = keras.layers.ReLU(name=f"stage_{index}")(hidden)
    image = keras.layers.Conv2D(
        channels,
        3,
        padding="same",
        activation="sigmoid",
        dtype="float32",
        name="image",
    )(hidden)
    return keras.Model(factors, image, name="rotation")
