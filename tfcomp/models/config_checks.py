"""Checks of a run that need no TensorFlow."""

import math

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import import_plugins
from tfcomp.config.process import count_memory
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.models import ENCODINGS, MODELS

# Datasets that make their images; a plugin's may read a file.
READ_NO_FILE = "gaussian_bumps stripes rotated_digits sprites composed".split()
FLOAT = 4  # bytes
# A weight, its gradient and the optimizer's two moments.
COPIES = 4


def check_config(config: RunConfig, here: bool = True) -> Dataset:
    """Checks a run and returns its dataset; elsewhere memory may be larger."""
    import_plugins(config.plugins)
    if config.data.data and config.data.dataset in READ_NO_FILE:
        rule = "must go with --dataset=table, which reads it"
        raise ConfigError("data", rule, config.data.data)
    ENCODINGS.get(config.model.encoding)
    check_model = MODELS.get(config.model.model).check
    dataset = make_dataset(config)
    if check_model:
        check_model(config, dataset)
    if config.keep_outputs and config.training.id_target:
        rule = "must be 0 beside --id_target, whose restarts would replace them"
        raise ConfigError("keep_outputs", rule, config.keep_outputs)
    if here:
        check_memory(config, dataset)
    return dataset


def check_memory(config: RunConfig, dataset: Dataset) -> None:
    """Refuses hidden layers and images that do not fit into this machine."""
    weights = COPIES * config.model.depth * config.model.width**2
    points = len(dataset.splits.grid)
    images = 2 + len(dataset.other_truths)  # of the model and the renderers
    pixels = images * points * math.prod(dataset.image_shape)
    flag = "eval_points" if dataset.splits.existing else dataset.size_flag
    for name, what, numbers in (
        ("width", "the weights", weights),
        (flag, f"images of {points:,} combinations", pixels),
    ):
        if FLOAT * numbers > (memory := count_memory()):
            rule = (
                f"must be smaller: {what} take {FLOAT * numbers / 1e9:,.1f} "
                f"GB, this machine has {memory / 1e9:,.1f} GB"
            )
            raise ConfigError(name, rule, config.to_flags()[name])
