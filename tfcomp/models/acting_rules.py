"""What the acting decoder may use, known and checked without TensorFlow."""

from collections.abc import Mapping, Sequence

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.models.model_rules import ModelSize, check_groups

POSE = ("x", "y", "angle", "size")
CHANNELS = (*POSE, "template", "color")  # color is for several channels
# In words, with the name of a factor before them.
VERBS = {
    "x": "moves along x",
    "y": "moves along y",
    "angle": "turns",
    "size": "scales",
    "template": "changes the template",
    "color": "changes the color",
}
# How fast channels learn, in units of the learning rate; else 1.
RATES = {"template": 2.5, "angle": 0.25}
FIRST_SIZE = 0.45  # of an object, in sides of the image
CANVAS = 16  # logits along a side of a template
FINE = 32  # pixels along a side, up to which an image has subpixels


def parse_channels(spec: str, colors: int) -> tuple[str, ...]:
    """The channels of a spec, in order; a ConfigError for impossible ones."""
    possible = CHANNELS if colors > 1 else CHANNELS[:-1]
    names = list(possible) if spec == "all" else spec.split(",")
    if set(names) - set(CHANNELS) or len({*names}) < len(names):
        rule = f"must be all, or some of {', '.join(CHANNELS)}"
        raise ConfigError("channels", rule, spec)
    if set(names) - set(possible):
        rule = "must not have color for images of one channel"
        raise ConfigError("channels", rule, spec)
    return tuple(c for c in possible if c in names)


def check_acting(config: RunConfig) -> None:
    """A one-hot code, groups of factors, and channels that there are."""
    dataset, model = make_dataset(config), config.model
    training = config.training
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
        check_groups(config)
    parse_channels(model.channels, dataset.image_shape[2])


def size_acting(config: RunConfig, dataset: Dataset) -> ModelSize:
    """Templates of all values and of all candidates, and their images."""
    rows, columns, colors = dataset.image_shape
    groups = config.model.groups.count(",") + 1
    points = rows * columns * count_subpixels((rows, columns)) ** 2
    values = sum(dataset.space.shape) + groups
    count = config.model.candidates
    weights = count * values * CANVAS**2
    return ModelSize(weights, count * groups * points * (8 + colors), 1)


def count_subpixels(shape: Sequence[int]) -> int:
    """Samples along each side of a pixel."""
    return 2 if max(shape) <= FINE else 1


def describe_channels(channels: Mapping[str, Mapping[str, float]]) -> str:
    """What factors were found to do, as `x moves along x; hue changes ...`."""
    return "; ".join(
        f"{factor} "
        + (" and ".join(VERBS.get(c, c) for c in found) or "does nothing")
        for factor, found in channels.items()
    )
