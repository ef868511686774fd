"""Plain decoders: fully connected, and transposed convolutions.

Those of the paper (section 3.1, appendices D, F.2 and F.3), and those of the
literature on disentangling.
"""

import math

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.model_rules import list_doublings


def build_cnn(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The published CNN.

    One transposed convolution draws the code on a quarter of the rows and
    columns of the image, two of stride 2 double that, the rest of `--depth`
    keeps the size; each has `--width` channels and a ReLU. A last one, linear,
    makes the image: depth + 2 in all. Of images of 28 x 28, with a bump code,
    width 64 and depth 2, 3 or 4 there are 307,457, 344,385 or 381,313 weights.
    """
    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)
    units = keras.layers.Reshape((1, 1, code.shape[-1]))(code)
    hidden = keras.layers.Conv2DTranspose(
        width, (rows // 4, columns // 4), activation="relu", name="stage_0"
    )(units)
    for index in range(1, config.model.depth + 1):
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
        channels, 3, padding="same", dtype="float32", name="image"
    )(hidden)
    return keras.Model(factors, image, name="cnn")


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


def build_deconvolution(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`burgess` of beta-VAE (Burgess et al. 2018), `kim` of FactorVAE (2018).

    Dense layers of 4 w units and of a first map of 4 x 4 x c, then transposed
    convolutions (kernel 4, stride 2) of c, w/2, ..., w/2, C channels, with
    w = `--width`, and c = w/2 for `burgess` or w for `kim`:

        x = (T_n relu ... relu T_1) reshape(relu D_2 relu D_1 code)

    The published sizes are those of width 64. There are as many doublings n as
    bring 4 pixels to the shorter side of the image, 4 for 64 x 64; the map
    that is reached is cropped to the image. Of 28 x 28 pixels, with a bump
    code and width 64, there are 179,521 weights (`kim`: 376,673).
    """
    start, (first, *hidden_filters, channels) = list_doublings(config, dataset)
    factors, hidden = make_code(config, dataset)
    for index, units in enumerate(
        (4 * config.model.width, math.prod(start) * first)
    ):
        hidden = keras.layers.Dense(
            units, activation="relu", name=f"stage_{index}"
        )(hidden)
    hidden = keras.layers.Reshape((*start, first))(hidden)
    for index, number in enumerate(hidden_filters, start=2):
        hidden = _make_doubling(
            number, activation="relu", name=f"stage_{index}"
        )(hidden)
    drawn = _make_doubling(channels, dtype="float32", name="drawn")(hidden)
    extra = [
        larger - side
        for larger, side in zip(
            drawn.shape[1:3], dataset.image_shape[:2], strict=True
        )
    ]
    crop = keras.layers.Cropping2D(
        [(size // 2, size - size // 2) for size in extra],
        dtype="float32",
        name="image",
    )
    return keras.Model(factors, crop(drawn), name=config.model.model)


def _make_doubling(filters: int, **kwargs) -> keras.layers.Layer:
    return keras.layers.Conv2DTranspose(
        filters, 4, strides=2, padding="same", **kwargs
    )


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
