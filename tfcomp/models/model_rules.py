"""What a model requires of a configuration, checked before TensorFlow."""

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.datasets.factors import Factor, FactorSpace, parse_groups

# In the order of an image's dimensions.
AXES = ("rows", "columns")
_CHOICES = {"find": AXES, "none": (), **{axis: (axis,) for axis in AXES}}
HEADS = 4  # of attention; sinusoids have as many parts


def parse_axes(spec: str, space: FactorSpace) -> dict[str, tuple[str, ...]]:
    """The axes by factor, none for a factor that gets a low-rank matrix.

    The spec is `find`, or a choice for some factors, as `x:columns,y:rows`.

    Raises:
        ConfigError: If the spec is malformed or does not fit the space.
    """
    found = {factor.name: _choose_default(factor) for factor in space}
    for part in spec.split(",") if spec != "find" else ():
        name, _, choice = part.partition(":")
        if name not in found or choice not in _CHOICES:
            factors, choices = ", ".join(found), ", ".join(_CHOICES)
            raise ConfigError(
                "axes",
                f"must be find, or give factors ({factors}) a choice "
                f"({choices}), as in x:columns,y:rows",
                spec,
            )
        found[name] = _CHOICES[choice]
    return found


def _choose_default(factor: Factor) -> tuple[str, ...]:
    return () if factor.categorical or factor.periodic else AXES


def check_cnn(config: RunConfig) -> None:
    """As `check_quarter`, with both doublings among the layers of `depth`.

    Raises:
        ConfigError: As `check_quarter`, or for a depth below 2.
    """
    check_quarter(config)
    if config.model.depth < 2:
        rule = "must be at least 2 for the model cnn to reach the grid"
        raise ConfigError("depth", rule, config.model.depth)


def check_low_rank(config: RunConfig) -> None:
    """A matrix per factor value: rank within the grid, a unit per value.

    Raises:
        ConfigError: For a rank above the smaller side of the image, or a code
            that is no population code.
    """
    dataset = make_dataset(config)
    rows, columns, _ = dataset.image_shape
    if config.model.rank > min(rows, columns):
        size = f"the smaller side of {rows} x {columns} pixels"
        if dataset.size_flag == "grid_size":
            size = f"--grid_size={rows}"
        raise ConfigError("rank", f"must be at most {size}", config.model.rank)
    if config.model.encoding not in ("one_hot", "bump"):
        rule = f"must be one_hot or bump for the model {config.model.model}"
        raise ConfigError("encoding", rule, config.model.encoding)


def check_hard_rendering(config: RunConfig) -> None:
    """As `check_low_rank`, and the axes are those of factors of the dataset.

    Raises:
        ConfigError: As `check_low_rank`, or for other axes.
    """
    check_low_rank(config)
    parse_axes(config.model.axes, make_dataset(config).space)


def check_quarter(config: RunConfig) -> None:
    """The image is reached from a quarter of it by two doublings.

    Raises:
        ConfigError: For rows or columns whose number is no multiple of 4.
    """
    dataset, model = make_dataset(config), config.model.model
    rows, columns, _ = dataset.image_shape
    if not rows % 4 and not columns % 4:
        return
    if dataset.size_flag == "grid_size":
        rule = f"must be a multiple of 4 for the model {model}"
        raise ConfigError("grid_size", rule, rows)
    rule = (
        "must fit the images: rows and columns must be multiples of 4, these "
        f"have {rows} x {columns}"
    )
    raise ConfigError("model", rule, model)


def check_groups(config: RunConfig) -> None:
    """The groups have every factor once.

    Raises:
        ConfigError: If they do not.
    """
    groups = config.model.groups
    try:
        parse_groups(groups, make_dataset(config).space)
    except ValueError as error:
        raise ConfigError("groups", str(error), groups) from error


def check_sinusoids(config: RunConfig) -> None:
    """As `check_groups`, and sinusoids of two axes share the channels.

    Raises:
        ConfigError: As `check_groups`, or if the width is no multiple of 4.
    """
    check_groups(config)
    model = config.model
    if model.width % HEADS:
        rule = f"must be a multiple of {HEADS} for the model {model.model}"
        raise ConfigError("width", rule, model.width)
