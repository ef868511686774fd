"""The model of a run as it is before the first step of training."""

import math

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import MODELS


def make_model(
    config: RunConfig, dataset: Dataset, precision: str
) -> keras.Model:
    """Builds the model of a run with its initial weights, by the seed.

    Hidden layers compute in `precision`, a dtype policy of Keras.
    """
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
    """Draws weights as the published code does: the defaults of PyTorch.

    Kernels and biases are uniform up to 1 / sqrt(fan-in), the weights of a
    kernel for each entry of its last dimension.
    """
    for layer in model.layers:
        if (kernel := getattr(layer, "kernel", None)) is None:
            continue
        bound = math.prod(kernel.shape[:-1]) ** -0.5
        for variable in (kernel, getattr(layer, "bias", None)):
            if variable is not None:
                draw = keras.initializers.RandomUniform(-bound, bound)
                variable.assign(draw(variable.shape, variable.dtype))
