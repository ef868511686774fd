"""Models of runs, and stages: the representations that analysis looks at.

In the models of tfcomp they are the layers named `code`, `stage_0`,
`stage_1`, ... and `image`; of any other functional Keras model they are given.
"""

import math
import re
from collections.abc import Sequence

import keras
from keras import KerasTensor

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import MODELS


class Stage(keras.layers.Layer):
    """Makes the first of its inputs a stage, after the stages that follow."""

    def call(self, inputs: list[KerasTensor]) -> KerasTensor:
        return inputs[0]


def list_stages(model: keras.Model) -> list[str]:
    """Returns the names of the model's stages in the order of data flow."""
    return [
        layer.name
        for layer in model.layers
        if isinstance(layer, Stage)
        or re.fullmatch(r"code|stage_\d+|image", layer.name)
    ]


def make_stage_model(
    model: keras.Model, stages: Sequence[str] | None = None
) -> keras.Model:
    """Returns a model with shared weights that returns all stages by name.

    Args:
        model: A functional or sequential Keras model.
        stages: Layer names; default `list_stages`.

    Raises:
        ValueError: If the model has no such layer, or none at all.
    """
    names = list(stages) if stages is not None else list_stages(model)
    if not names:
        raise ValueError(
            "the model has no layer named code, stage_<i> or image: "
            "give the layers to analyze as stages"
        )
    inputs = model.inputs[0] if len(model.inputs) == 1 else model.inputs
    outputs = {name: model.get_layer(name).output for name in names}
    return keras.Model(inputs, outputs, name=f"{model.name}_stages")


def make_model(
    config: RunConfig, dataset: Dataset, precision: str
) -> keras.Model:
    """Builds the model of a run by its seed, hidden layers in `precision`."""
    keras.utils.set_random_seed(config.training.seed)
    model = build_model(config, dataset, precision)
    if config.model.start == "published":
        apply_published_start(model)
    return model


def build_model(
    config: RunConfig, dataset: Dataset, precision: str
) -> keras.Model:
    """Builds the model of a run; the random state decides its weights."""
    build = MODELS.get(config.model.model).load()
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        return build(config, dataset)
    finally:
        keras.config.set_dtype_policy(policy)


def apply_published_start(model: keras.Model) -> None:
    """Draws weights as PyTorch: uniform up to 1 / sqrt(fan-in)."""
    for layer in model.layers:
        if (kernel := getattr(layer, "kernel", None)) is None:
            continue
        bound = math.prod(kernel.shape[:-1]) ** -0.5
        for variable in (kernel, getattr(layer, "bias", None)):
            if variable is not None:
                draw = keras.initializers.RandomUniform(-bound, bound)
                variable.assign(draw(variable.shape, variable.dtype))
