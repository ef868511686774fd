"""Decoders of the literature on disentangling: dense layers, then doublings."""

import math

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.model_sizes import list_doublings


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
