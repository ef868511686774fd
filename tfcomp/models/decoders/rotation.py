"""The published network of rotated digits."""

import math

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model
from tfcomp.models.model_rules import check_quarter


@MODELS.register("rotation", check=check_quarter)
def build_rotation(config: RunConfig, dataset: Dataset) -> Model:
    """The published network of rotated digits (appendix F.2 of the paper).

    A dense layer draws the code on a quarter of the image's rows and columns;
    two transposed convolutions double that, each with batch normalization (as
    in PyTorch) and a ReLU; a convolution and a sigmoid make the image. These
    layers have exactly the published number of trained weights: 406,913 with a
    scalar input, an image of 28 x 28 and width 64 (413,185 with cos and sin).
    """
    import keras
    from keras import layers

    from tfcomp.models.encodings.base import make_code

    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)
    first = (rows // 4, columns // 4, 2 * width)
    dense = layers.Dense(math.prod(first), activation="relu", name="dense")
    hidden = layers.Reshape(first, name="stage_0")(dense(code))
    for index, filters in enumerate((2 * width, width), start=1):
        hidden = layers.Conv2DTranspose(
            filters, 4, strides=2, padding="same", name=f"double_{index}"
        )(hidden)
        hidden = layers.BatchNormalization(
            momentum=0.9, epsilon=1e-5, name=f"normalize_{index}"
        )(hidden)
        hidden = layers.ReLU(name=f"stage_{index}")(hidden)
    image = layers.Conv2D(
        channels,
        3,
        padding="same",
        activation="sigmoid",
        dtype="float32",
        name="image",
    )(hidden)
    return keras.Model(factors, image, name="rotation")
