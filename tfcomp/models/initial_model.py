"""The model of a run as it is before the first step of training."""

from __future__ import annotations

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import MODELS
from tfcomp.models.published_start import apply_published_start


def make_model(
    config: RunConfig, dataset: Dataset, precision: str
) -> keras.Model:
    """The model of a run with its initial weights, a function of the seed.

    Its hidden layers compute in `precision`, a dtype policy of Keras.
    """
    keras.utils.set_random_seed(config.training.seed)
    build = MODELS.get(config.model.model).load()
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        model = build(config, dataset)
    finally:
        keras.config.set_dtype_policy(policy)
    if config.model.start == "published":
        apply_published_start(model)
    return model
