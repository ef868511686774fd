"""Decoders by name, each with its rules and its cost, and their threads.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    cost(config)             multiplications of the widest layer, per image

Neither may import TensorFlow: they are called before it starts.
"""

import os
from typing import TYPE_CHECKING, Any

from tfcomp.config.registry import Registry
from tfcomp.config.run_config import RunConfig

if TYPE_CHECKING:
    from keras import KerasTensor as Tensor
    from keras import Model
else:  # types that decoders name before Keras is imported
    Tensor = Model = Any

MODELS = Registry("model")
# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (benchmarks/README.md).
_MIN_MULTIPLICATIONS = 200e6


def limit_threads(config: RunConfig) -> None:
    """Limits the threads of TensorFlow before it starts; a variable wins."""
    if threads := choose_threads(config):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads))


def choose_threads(config: RunConfig) -> int:
    """Returns one thread for a small network, 0 for any number.

    It depends on the settings alone, since the number of threads changes bits:
    a resumed run has the number that it was started with.
    """
    name = config.model.model
    cost = MODELS.get(name).cost if name in MODELS.names() else None
    if cost is None:
        return 0
    return int(config.training.batch_size * cost(config) < _MIN_MULTIPLICATIONS)
