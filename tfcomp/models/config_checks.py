"""What can be checked of a run without TensorFlow."""

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import import_plugins
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.models import ENCODINGS, MODELS
from tfcomp.models.run_memory import (
    check_kept,
    check_memory,
    estimate_memory,
)

# Data sets that make their images; those of plugins may read a file.
READ_NO_FILE = ("gaussian_bumps", "stripes", "rotated_digits", "sprites")


def check_config(config: RunConfig) -> None:
    """Checks a run, and prints what its user should know.

    Raises:
        ConfigError: Naming the flag, the rule and the value.
    """
    for line in list_announcements(config):
        print(line)


def list_announcements(config: RunConfig, here: bool = True) -> list[str]:
    """Checks a run; returns what its user should know, a line each.

    Unless it runs `here`, the memory of this machine does not matter.

    Raises:
        ConfigError: Naming the flag, the rule and the value.
    """
    import_plugins(config.plugins)
    if config.data.data and config.data.dataset in READ_NO_FILE:
        rule = "must go with --dataset=table, which reads it"
        raise ConfigError("data", rule, config.data.data)
    ENCODINGS.get(config.model.encoding)
    check_model = MODELS.get(config.model.model).check
    if check_model is not None:
        check_model(config)
    dataset = make_dataset(config)
    check_kept(config, dataset)
    if here:
        check_memory(config, estimate_memory(config, dataset))
    return dataset.announcements()
