"""Coordinate network: every pixel by itself, from the code and its place."""

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.pixels import PixelDense


def build_coordinate(config: RunConfig, dataset: Dataset) -> keras.Model:
    """One fully connected network that all pixels share.

        x_p = V phi_d( ... phi_1(W code + w + PE(p)))

    of `--depth` layers phi of `--width` units with a PReLU each. The published
    code of the paper has it as `spatial_aware_mlp`, with 146,435 weights for 56
    inputs, width 256 and depth 2. With a bump code of 28 x 28 pixels, width 64
    and depth 4 there are 20,357.
    """
    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = keras.layers.Dense(width, name="projection")(code)
    for index in range(config.model.depth):
        layer = (
            keras.layers.Dense(width, name=f"dense_{index}")
            if index
            else PixelDense(
                dataset.image_shape[:2], width, "sinusoids", name="dense_0"
            )
        )
        hidden = keras.layers.PReLU(
            alpha_initializer=keras.initializers.Constant(0.25),
            shared_axes=[1, 2, 3],
            name=f"stage_{index}",
        )(layer(hidden))
    draw = keras.layers.Dense(
        dataset.image_shape[2], dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="coordinate")
