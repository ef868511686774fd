"""Forced rendering for factors without an axis in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.acting_rules import (
    CANVAS,
    count_subpixels,
    parse_channels,
)
from tfcomp.models.model_registry import MODELS, ModelSize
from tfcomp.models.model_rules import check_groups

if TYPE_CHECKING:
    import keras


def check_acting(config: RunConfig, dataset: Dataset) -> None:
    """Checks code, groups, channels and what trains the candidates."""
    model, training = config.model, config.training
    if model.encoding != "one_hot":
        rule = "must be one_hot for the model acting"
        raise ConfigError("encoding", rule, model.encoding)
    if training.num_replicas > 1:
        rule = "must be at most 1 for the model acting"
        raise ConfigError("num_replicas", rule, training.num_replicas)
    if training.precision != "float32":
        rule = "must be float32 for the model acting"
        raise ConfigError("precision", rule, training.precision)
    if model.groups:
        check_groups(config, dataset)
    parse_channels(model.channels, dataset.image_shape[2])


def size_acting(config: RunConfig, dataset: Dataset) -> ModelSize:
    """Returns the size of the templates and images of all candidates."""
    rows, columns, colors = dataset.image_shape
    groups = config.model.groups.count(",") + 1
    points = rows * columns * count_subpixels((rows, columns)) ** 2
    values = sum(dataset.space.shape) + groups
    count = config.model.candidates
    weights = count * values * CANVAS**2
    return ModelSize(weights, count * groups * points * (8 + colors), 1)


@MODELS.register("acting", check=check_acting, size=size_acting)
def build_acting(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Returns the decoder in which values of factors act on a template."""
    from tfcomp.models import acting

    return acting.build_acting(config, dataset)
