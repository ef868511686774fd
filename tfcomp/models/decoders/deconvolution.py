"""Transposed convolutions, as in variational autoencoders."""

import math

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model

FIRST_SIDE = 4  # pixels of the shorter side of a map that is doubled


def list_doublings(
    config: RunConfig, dataset: Dataset
) -> tuple[list[int], list[int]]:
    """Returns the sides of the first map and the channels of all maps.

    As many doublings as bring `FIRST_SIDE` pixels to the shorter side.
    """
    rows, columns, channels = dataset.image_shape
    shorter = math.log2(min(rows, columns) / FIRST_SIDE)
    count, width = max(1, math.ceil(shorter)), config.model.width
    start = [math.ceil(side / 2**count) for side in (rows, columns)]
    half = max(1, width // 2)
    first = half if config.model.model == "burgess" else width
    hidden = [first, *[half] * (count - 2)][: count - 1]
    return start, [first, *hidden, channels]


@MODELS.register("burgess")
@MODELS.register("kim")
def build_deconvolution(config: RunConfig, dataset: Dataset) -> Model:
    """`burgess` of beta-VAE (Burgess et al. 2018), `kim` of FactorVAE (2018).

    Dense layers of 4 w units and of a first map of 4 x 4 x c, then transposed
    convolutions (kernel 4, stride 2) of c, w/2, ..., w/2, C channels, with
    w = `--width`, 64 as published, and c = w/2 for `burgess` or w for `kim`:

        x = (T_n relu ... relu T_1) reshape(relu D_2 relu D_1 code)

    There are as many doublings n as bring 4 pixels to the shorter side of the
    image; the map that is reached is cropped to it.
    """
    import keras
    import numpy as np
    from keras import layers

    from tfcomp.models.encodings.base import make_code

    start, (first, *hidden_filters, channels) = list_doublings(config, dataset)
    factors, hidden = make_code(config, dataset)
    sizes = (4 * config.model.width, math.prod(start) * first)
    for index, units in enumerate(sizes):
        dense = layers.Dense(units, activation="relu", name=f"stage_{index}")
        hidden = dense(hidden)
    hidden = layers.Reshape((*start, first))(hidden)
    for index, number in enumerate(hidden_filters, start=2):
        hidden = layers.Conv2DTranspose(
            number, 4, 2, "same", activation="relu", name=f"stage_{index}"
        )(hidden)
    drawn = layers.Conv2DTranspose(
        channels, 4, 2, "same", dtype="float32", name="drawn"
    )(hidden)
    extra = np.subtract(drawn.shape[1:3], dataset.image_shape[:2]).tolist()
    edges = [(size // 2, size - size // 2) for size in extra]
    crop = layers.Cropping2D(edges, dtype="float32", name="image")
    return keras.Model(factors, crop(drawn), name=config.model.model)
