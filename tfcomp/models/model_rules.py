"""What models require, and how large they are, known without TensorFlow."""

import math
from itertools import pairwise
from typing import NamedTuple

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.factors import FactorSpace, parse_groups

COMPOSED = ("additive", "product", "low_rank_product", "occlusion", "slots")
TOKENS = 28 * 28  # of a transformer, at most, if it is free to choose
FIRST_SIDE = 4  # pixels of the shorter side of a map that is doubled
# In the order of an image's dimensions.
AXES = ("rows", "columns")
_CHOICES = {"find": AXES, "none": (), **{axis: (axis,) for axis in AXES}}
HEADS = 4  # of attention; sinusoids have as many parts


class ModelSize(NamedTuple):
    """Weights, units of the largest stage, stages that are about as large."""

    weights: int
    widest: int
    stages: int


def estimate_model(config: RunConfig, dataset: Dataset) -> ModelSize:
    """At least so much of a shipped model: its large layers, no biases."""
    model, (side, columns, channels) = config.model, dataset.image_shape
    width, depth, shape = model.width, model.depth, dataset.space.shape
    is_population = model.encoding in ("bump", "one_hot", "positional")
    code = sum(shape) if is_population else len(shape)
    area, widest, stages = side * columns, width * side * columns, depth
    match model.model:
        case "cnn":
            inner = (2 * 16 + (depth - 2) * 9) * width
            weights = width * (code * (area // 16) + inner)
            stages = depth - 1
        case "mlp":
            weights = width * (code + (depth - 1) * width + area * channels)
            widest = width
        case "low_rank":
            weights = sum(shape) * model.rank * (2 * side + 1)
            widest, stages = len(shape) * area, depth + 1
        case "hard_rendering":
            axes = parse_axes(model.axes, dataset.space)
            low_rank = model.rank * (2 * side + 1)
            weights = 9 * width * (len(shape) + (depth - 1) * width)
            for factor in dataset.space:
                own = len(axes[factor.name]) * side or low_rank
                weights += factor.size * own
        case "rotation":
            weights = width * (code * area // 8 + 6 * 16 * width)
            stages = 1
        case "burgess" | "kim":
            start, filters = list_doublings(config, dataset)
            weights = 4 * width * (code + math.prod(start) * filters[0])
            weights += sum(16 * a * b for a, b in pairwise(filters))
            widest = filters[-2] * math.prod(start) * 4 ** (len(filters) - 2)
            stages = 1
        case "broadcast":
            weights = width * (code + 9 * (depth * width + channels))
            stages = depth + 1
        case "coordinate":
            weights = width * (code + depth * width + channels)
        case "transformer":
            patch = choose_patch(config, dataset) ** 2
            weights = width * (code + 12 * depth * width + channels * patch)
            widest = HEADS * (area // patch) ** 2
        case "film":
            weights = width * (depth * (9 * width + 2 * code) + channels)
        case "attention":
            weights = width * (code + (depth + 4) * width + channels)
            stages = depth + 1
        case _ if model.model in COMPOSED:
            count = len(parse_groups(model.groups, dataset.space))
            rank = model.rank if model.model == "low_rank_product" else 1
            masks = {"occlusion": count - 1, "slots": count}
            drawn = count * rank * channels + masks.get(model.model, 0)
            inner = count * (depth - 1) * width
            weights = width * (code + inner + drawn * area)
            widest, stages = max(drawn * area, count * width), 1
        case _:
            return ModelSize(0, 0, 0)
    return ModelSize(weights, widest, stages)


def choose_patch(config: RunConfig, dataset: Dataset) -> int:
    """Of the transformer: rows and columns of pixels of a token, a divisor."""
    rows, columns, _ = dataset.image_shape
    side, area = math.gcd(rows, columns), rows * columns
    asked = config.model.patch_size
    divisors = [d for d in range(1, side + 1) if side % d == 0]
    if asked and asked not in divisors:
        rule = f"must be 0, or one of {', '.join(map(str, divisors))}"
        raise ConfigError("patch_size", rule, asked)
    few = (d for d in divisors if area // d**2 <= TOKENS)
    return asked or next(few, side)


def list_doublings(
    config: RunConfig, dataset: Dataset
) -> tuple[list[int], list[int]]:
    """Of `burgess` and `kim`: sides of the first map, channels of all maps.

    As many doublings as bring `FIRST_SIDE` pixels to the shorter side.
    """
    rows, columns, channels = dataset.image_shape
    shorter = math.log2(min(rows, columns) / FIRST_SIDE)
    count, width = max(1, math.ceil(shorter)), config.model.width
    start = [math.ceil(side / 2**count) for side in (rows, columns)]
    half = max(1, width // 2)
    first = half if config.model.model == "burgess" else width
    hidden = [first, *[half] * (count - 2)][: count - 1]
    return start, [first, *hidden, channels]


def parse_axes(spec: str, space: FactorSpace) -> dict[str, tuple[str, ...]]:
    """The axes by factor, none for a factor that gets a low-rank matrix.

    The spec is `find`, or a choice for some factors, as `x:columns,y:rows`; a
    ConfigError says what it must be.
    """
    found = {f.name: () if f.categorical or f.periodic else AXES for f in space}
    for part in spec.split(",") if spec != "find" else ():
        name, _, choice = part.partition(":")
        if name not in found or choice not in _CHOICES:
            factors, choices = ", ".join(found), ", ".join(_CHOICES)
            rule = f"must be find, or give factors ({factors}) a choice "
            rule += f"({choices}), as in x:columns,y:rows"
            raise ConfigError("axes", rule, spec)
        found[name] = _CHOICES[choice]
    return found


def check_low_rank(config: RunConfig) -> None:
    """Matrices of values: rank within the image, a population code, axes."""
    dataset, model = make_dataset(config), config.model
    rows, columns, _ = dataset.image_shape
    if model.rank > min(rows, columns):
        size = f"the smaller side of {rows} x {columns} pixels"
        if dataset.size_flag == "grid_size":
            size = f"--grid_size={rows}"
        raise ConfigError("rank", f"must be at most {size}", model.rank)
    if model.encoding not in ("one_hot", "bump"):
        rule = f"must be one_hot or bump for the model {model.model}"
        raise ConfigError("encoding", rule, model.encoding)
    if model.model == "hard_rendering":
        parse_axes(model.axes, dataset.space)


def check_quarter(config: RunConfig) -> None:
    """The image is reached from a quarter of it by two doublings."""
    dataset, model = make_dataset(config), config.model.model
    rows, columns, _ = dataset.image_shape
    if rows % 4 or columns % 4:
        if dataset.size_flag == "grid_size":
            rule = f"must be a multiple of 4 for the model {model}"
            raise ConfigError("grid_size", rule, rows)
        rule = "must fit the images: rows and columns must be multiples of 4"
        rule = f"{rule}, these have {rows} x {columns}"
        raise ConfigError("model", rule, model)
    if model == "cnn" and config.model.depth < 2:
        rule = "must be at least 2 for the model cnn to reach the grid"
        raise ConfigError("depth", rule, config.model.depth)


def check_groups(config: RunConfig) -> None:
    """The groups have every factor once."""
    groups = config.model.groups
    try:
        parse_groups(groups, make_dataset(config).space)
    except ValueError as error:
        raise ConfigError("groups", str(error), groups) from error


def check_sinusoids(config: RunConfig) -> None:
    """As `check_groups`, and sinusoids of two axes share the channels."""
    check_groups(config)
    model = config.model
    if model.width % HEADS:
        rule = f"must be a multiple of {HEADS} for the model {model.model}"
        raise ConfigError("width", rule, model.width)
