"""Decoders by name, each with its rules, its size and its cost.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    size(config, dataset)    returns a `ModelSize`: at least so large
    cost(config)             multiplications of the widest layer, per image

None of these three may import TensorFlow: they are asked before it starts.
"""

import math
from typing import NamedTuple

from tfcomp.config.registry import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset

MODELS = Registry("model")
# Codes with a unit for every value of a factor.
POPULATION = ("bump", "one_hot", "positional")


class ModelSize(NamedTuple):
    """Weights, units of the largest stage, stages that are about as large.

    The last one is the flag that the weights grow with.
    """

    weights: int
    widest: int
    stages: int
    flag: str = "width"


def size_model(config: RunConfig, dataset: Dataset) -> ModelSize:
    """Returns the size of a model, nothing if its builder does not say it."""
    size = MODELS.get(config.model.model).size
    return size(config, dataset) if size else ModelSize(0, 0, 0)


def count_multiplications(config: RunConfig) -> float:
    """Returns the multiplications per image, infinity if they are unknown."""
    name = config.model.model
    cost = MODELS.get(name).cost if name in MODELS.names() else None
    return cost(config) if cost else math.inf


def count_code(config: RunConfig, dataset: Dataset) -> int:
    """Returns the number of units of the code, at least."""
    shape = dataset.space.shape
    is_population = config.model.encoding in POPULATION
    return sum(shape) if is_population else len(shape)


def count_pixels(dataset: Dataset) -> int:
    """Returns the number of pixels of an image."""
    return math.prod(dataset.image_shape[:2])
