"""What can be checked of a run without TensorFlow."""

from __future__ import annotations

from tfcomp.config.plugins import import_plugins
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.models import ENCODINGS
from tfcomp.models import MODELS


def check_config(config: RunConfig) -> None:
    """Checks a run, and prints what its user should know.

    Raises:
        ConfigError: Naming the flag, the rule and the value.
    """
    for line in list_announcements(config):
        print(line)


def list_announcements(config: RunConfig) -> list[str]:
    """Checks a run; returns what its user should know, a line each.

    Raises:
        ConfigError: Naming the flag, the rule and the value.
    """
    import_plugins(config.plugins)
    ENCODINGS.get(config.model.encoding)
    check_model = MODELS.get(config.model.model).check
    if check_model is not None:
        check_model(config)
    return make_dataset(config).announcements()
