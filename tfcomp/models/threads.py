"""How many threads the training of a decoder can use."""

import os

from tfcomp.config.run_config import RunConfig
from tfcomp.models.model_registry import count_multiplications

# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (benchmarks/README.md).
_MIN_MULTIPLICATIONS = 200e6


def limit_threads(config: RunConfig) -> None:
    """Gives a run its threads, before TensorFlow starts; a variable wins."""
    if threads := choose_threads(config):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads))


def choose_threads(config: RunConfig) -> int:
    """Returns one thread for a small network, 0 for any number.

    It depends on the settings alone, since the number of threads changes bits:
    a resumed run has the number that it was started with.
    """
    number = config.training.batch_size * count_multiplications(config)
    return int(number < _MIN_MULTIPLICATIONS)
