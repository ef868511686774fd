"""Decoders and encodings by name; rules, cost and threads of decoders.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    cost(config)             multiplications of the widest layer, per image

Neither may import TensorFlow: they are called before it starts.
"""

import math
import os
from collections.abc import Mapping

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace, parse_groups

MODELS, ENCODINGS = Registry("model"), Registry("encoding")
# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (benchmarks/README.md).
_MIN_MULTIPLICATIONS = 200e6

AXES = ("rows", "columns")  # in the order of an image's dimensions
_AXES_BY_CHOICE = {"find": AXES, "none": (), **{axis: (axis,) for axis in AXES}}
HEADS = 4  # of attention; sinusoids have as many parts
_MAX_TOKENS = 28 * 28  # if the patch is free

POSE = ("x", "y", "angle", "size")
POSE_TERMS = (*POSE, "template", "color")  # color is for several channels
_VERBS = {
    "x": "moves along x",
    "y": "moves along y",
    "angle": "turns",
    "size": "scales",
    "template": "changes the template",
    "color": "changes the color",
}


def limit_threads(config: RunConfig) -> None:
    """Limits the threads of TensorFlow before it starts; a variable wins."""
    if threads := choose_threads(config):
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads))


def choose_threads(config: RunConfig) -> int:
    """Returns 1 for a small network, else 0; it may not change in a resume."""
    name = config.model.model
    cost = MODELS.get(name).cost if name in MODELS.names() else None
    if cost is None:
        return 0
    return int(config.training.batch_size * cost(config) < _MIN_MULTIPLICATIONS)


def _cost_convolution(config: RunConfig) -> int:
    return 9 * config.model.width**2 * config.data.grid_size**2


def _cost_low_rank(config: RunConfig) -> int:
    return 2 * config.model.rank * config.data.grid_size**2


def _refuse(config: RunConfig, flag: str, rule: str) -> ConfigError:
    rule = f"{rule} for the model {config.model.model}"
    return ConfigError(flag, rule, config.to_flags()[flag])


def _check_quarter(config: RunConfig, dataset: Dataset) -> None:
    rows, columns, _ = dataset.image_shape
    if rows % 4 == 0 and columns % 4 == 0:
        return
    if dataset.size_flag == "grid_size":
        raise _refuse(config, "grid_size", "must be a multiple of 4")
    rule = "must fit the images: rows and columns must be multiples of 4"
    rule = f"{rule}, these have {rows} x {columns}"
    raise ConfigError("model", rule, config.model.model)


def _check_cnn(config: RunConfig, dataset: Dataset) -> None:
    _check_quarter(config, dataset)
    if config.model.depth < 2:
        raise _refuse(config, "depth", "must be at least 2")


def _check_groups(config: RunConfig, dataset: Dataset) -> None:
    groups = config.model.groups
    try:
        parse_groups(groups, dataset.space)
    except ValueError as error:
        raise ConfigError("groups", str(error), groups) from error


def _check_sinusoids(config: RunConfig, dataset: Dataset) -> None:
    _check_groups(config, dataset)
    if config.model.width % HEADS:
        raise _refuse(config, "width", f"must be a multiple of {HEADS}")


def _check_transformer(config: RunConfig, dataset: Dataset) -> None:
    _check_sinusoids(config, dataset)
    choose_patch(config, dataset)


def choose_patch(config: RunConfig, dataset: Dataset) -> int:
    """Returns the rows and columns of pixels of a token, a divisor."""
    rows, columns, _ = dataset.image_shape
    side, area = math.gcd(rows, columns), rows * columns
    asked = config.model.patch_size
    divisors = [d for d in range(1, side + 1) if side % d == 0]
    if asked and asked not in divisors:
        rule = f"must be 0, or one of {', '.join(map(str, divisors))}"
        raise ConfigError("patch_size", rule, asked)
    few = (d for d in divisors if area // d**2 <= _MAX_TOKENS)
    return asked or next(few, side)


def _check_low_rank(config: RunConfig, dataset: Dataset) -> None:
    rows, columns, _ = dataset.image_shape
    if config.model.rank > min(rows, columns):
        size = f"the smaller side of {rows} x {columns} pixels"
        if dataset.size_flag == "grid_size":
            size = f"--grid_size={rows}"
        raise _refuse(config, "rank", f"must be at most {size}")
    if config.model.encoding not in ("one_hot", "bump"):
        raise _refuse(config, "encoding", "must be one_hot or bump")


def _check_hard_rendering(config: RunConfig, dataset: Dataset) -> None:
    _check_low_rank(config, dataset)
    parse_axes(config.model.axes, dataset.space)


def parse_axes(spec: str, space: FactorSpace) -> dict[str, tuple[str, ...]]:
    """Returns the axes by factor of `find`, or of `x:columns,y:rows`."""
    axes: dict[str, tuple[str, ...]]
    axes = {f.name: () if f.categorical or f.periodic else AXES for f in space}
    for part in spec.split(",") if spec != "find" else ():
        name, _, choice = part.partition(":")
        if name not in axes or choice not in _AXES_BY_CHOICE:
            factors, choices = ", ".join(axes), ", ".join(_AXES_BY_CHOICE)
            rule = f"must be find, or give factors ({factors}) a choice "
            rule += f"({choices}), as in x:columns,y:rows"
            raise ConfigError("axes", rule, spec)
        axes[name] = _AXES_BY_CHOICE[choice]
    return axes


def _check_acting(config: RunConfig, dataset: Dataset) -> None:
    if config.training.num_replicas > 1:
        raise _refuse(config, "num_replicas", "must be at most 1")
    for flag, value in {"encoding": "one_hot", "precision": "float32"}.items():
        if config.to_flags()[flag] != value:
            raise _refuse(config, flag, f"must be {value}")
    if config.model.groups:
        _check_groups(config, dataset)
    parse_pose_terms(config.model.channels, dataset.image_shape[2])


def parse_pose_terms(spec: str, colors: int) -> tuple[str, ...]:
    """Returns the terms of a spec, in order; ConfigError for invalid ones."""
    # One channel has no color.
    possible = POSE_TERMS if colors > 1 else POSE_TERMS[:-1]
    names = list(possible) if spec == "all" else spec.split(",")
    if len({*names} & {*possible}) < len(names):
        rule = f"must be all, or some of {', '.join(possible)}"
        raise ConfigError("channels", rule, spec)
    return tuple(term for term in possible if term in names)


def describe_pose_terms(factors: Mapping[str, Mapping[str, float]]) -> str:
    """Describes factors, as `x moves along x; hue changes the color`."""
    verbs = {
        factor: " and ".join(_VERBS.get(term, term) for term in terms)
        for factor, terms in factors.items()
    }
    return "; ".join(f"{f} {v or 'does nothing'}" for f, v in verbs.items())


for _name, _builder, *_rules in (
    ("mlp", "convolutional:build_mlp"),
    ("cnn", "convolutional:build_cnn", _check_cnn, _cost_convolution),
    ("rotation", "convolutional:build_rotation", _check_quarter),
    ("broadcast", "convolutional:build_broadcast"),
    ("burgess", "convolutional:build_deconvolution"),
    ("kim", "convolutional:build_deconvolution"),
    ("coordinate", "pixelwise:build_coordinate", _check_sinusoids),
    ("film", "pixelwise:build_film", _check_sinusoids),
    ("attention", "pixelwise:build_attention", _check_sinusoids),
    ("transformer", "pixelwise:build_transformer", _check_transformer),
    ("additive", "composed:build_composed", _check_groups),
    ("product", "composed:build_composed", _check_groups),
    ("low_rank_product", "composed:build_composed", _check_groups),
    ("occlusion", "composed:build_composed", _check_groups),
    ("slots", "composed:build_composed", _check_groups),
    (
        *("low_rank", "forced_rendering:build_low_rank"),
        *(_check_low_rank, _cost_low_rank),
    ),
    (
        *("hard_rendering", "forced_rendering:build_low_rank"),
        *(_check_hard_rendering, _cost_convolution),
    ),
    ("acting", "acting:build_acting", _check_acting),
):
    MODELS.register(_name, f"tfcomp.models.{_builder}", *_rules)
for _name, _class in {
    "bump": "BumpEncoding",
    "one_hot": "OneHotEncoding",
    "positional": "PositionalEncoding",
    "circle": "CircleEncoding",
    "ramp": "RampEncoding",
}.items():
    ENCODINGS.register(_name, f"tfcomp.models.encodings:{_class}.of_run")
