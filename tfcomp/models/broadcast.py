"""Spatial broadcast decoder (Watters et al. 2019)."""

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.pixels import PixelDense


def build_broadcast(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The code and the coordinates at every pixel, then convolutions.

        x = C_(d+1) relu C_d ... relu C_1 relu(W [code, x_p, y_p] + b)

    of 3 x 3 convolutions C_1 .. C_d (d = `--depth`) with `--width` channels.
    As what is broadcast is constant or linear along the image, a first
    convolution of it that pads nothing, as published, is the product with W.
    Of 28 x 28 pixels, with a bump code, width 64 and depth 4 there are 152,065
    weights.
    """
    size, width = dataset.image_shape[:2], config.model.width
    factors, code = make_code(config, dataset)
    hidden = PixelDense(size, width, "coordinates", name="broadcast")(code)
    hidden = keras.layers.ReLU(name="stage_0")(hidden)
    for index in range(1, config.model.depth + 1):
        hidden = keras.layers.Conv2D(
            width, 3, padding="same", activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = keras.layers.Conv2D(
        dataset.image_shape[2], 3, padding="same", dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="broadcast")
