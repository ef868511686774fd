"""Rules that several decoders share, known without TensorFlow."""

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import parse_groups

# In the order of an image's dimensions.
AXES = ("rows", "columns")
HEADS = 4  # of attention; sinusoids have as many parts


def check_quarter(config: RunConfig, dataset: Dataset) -> None:
    """Checks that two doublings of a quarter reach the image."""
    rows, columns, _ = dataset.image_shape
    model = config.model.model
    if rows % 4 or columns % 4:
        if dataset.size_flag == "grid_size":
            rule = f"must be a multiple of 4 for the model {model}"
            raise ConfigError("grid_size", rule, rows)
        rule = "must fit the images: rows and columns must be multiples of 4"
        rule = f"{rule}, these have {rows} x {columns}"
        raise ConfigError("model", rule, model)


def check_groups(config: RunConfig, dataset: Dataset) -> None:
    """Checks that the groups have every factor once."""
    groups = config.model.groups
    try:
        parse_groups(groups, dataset.space)
    except ValueError as error:
        raise ConfigError("groups", str(error), groups) from error


def check_sinusoids(config: RunConfig, dataset: Dataset) -> None:
    """Checks groups, and that sinusoids of two axes share the channels."""
    check_groups(config, dataset)
    model = config.model
    if model.width % HEADS:
        rule = f"must be a multiple of {HEADS} for the model {model.model}"
        raise ConfigError("width", rule, model.width)
