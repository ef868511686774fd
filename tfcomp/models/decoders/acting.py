"""Forced rendering for factors without an axis in the image."""

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.acting_rules import (
    parse_pose_terms,
)
from tfcomp.models.model_registry import MODELS
from tfcomp.models.model_rules import check_groups


def check_acting(config: RunConfig, dataset: Dataset) -> None:
    """Checks code, groups, pose terms and settings of the training."""
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
    parse_pose_terms(model.channels, dataset.image_shape[2])


MODELS.register("acting", "tfcomp.models.acting.build_acting", check_acting)
