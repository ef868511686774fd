"""Fully connected layers."""

import math

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model


@MODELS.register("mlp")
def build_mlp(config: RunConfig, dataset: Dataset) -> Model:
    """`--depth` ReLU layers of `--width` units and a linear layer of pixels."""
    import keras
    from keras import layers

    from tfcomp.models.encodings.base import make_code

    shape = dataset.image_shape
    factors, hidden = make_code(config, dataset)
    for index in range(config.model.depth):
        hidden = layers.Dense(
            config.model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = layers.Dense(math.prod(shape), dtype="float32", name="pixels")
    arrange = layers.Reshape(shape, dtype="float32", name="image")
    return keras.Model(factors, arrange(draw(hidden)), name="mlp")
