"""Transposed-convolution decoder (section 3.1, appendix D)."""

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code


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
