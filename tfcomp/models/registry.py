"""Registries of decoders and encodings, and parts that builders share.

A builder is called as `build(config, dataset)`. `MODELS.register` also takes

    check(config, dataset)   raises a `ConfigError` for impossible settings
    cost(config)             multiplications of the widest layer, per image

Both are called before TensorFlow starts. Modules of `decoders`, which register
themselves, import it in their builders, and `keras` and `layers` from here.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace, parse_groups


class LazyModule:
    """A module that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import keras
    from keras import layers
else:
    keras = LazyModule("keras")
    layers = LazyModule("keras.layers")

MODELS = Registry("model")
ENCODINGS = Registry("encoding")
# Multiplications of a forward pass below which a second thread of TensorFlow
# costs more than it brings (benchmarks/README.md).
_MIN_MULTIPLICATIONS = 200e6

AXES = ("rows", "columns")  # in the order of an image's dimensions
HEADS = 4  # of attention; sinusoids have as many parts

_ENCODING_CLASSES = {
    "bump": "BumpEncoding",
    "one_hot": "OneHotEncoding",
    "positional": "PositionalEncoding",
    "circle": "CircleEncoding",
    "ramp": "RampEncoding",
}


def _make_code(
    name: str,
    config: RunConfig,
    space: FactorSpace,
) -> keras.Layer:
    from tfcomp.models import encodings

    encoding_class = getattr(encodings, name)
    return encoding_class.of_run(config, space)


for _name, _class in _ENCODING_CLASSES.items():
    ENCODINGS.register(_name, functools.partial(_make_code, _class))


def limit_threads(config: RunConfig) -> None:
    """Limits the threads of TensorFlow before it starts; a variable wins."""
    threads = choose_threads(config)
    if threads:
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads))


def choose_threads(config: RunConfig) -> int:
    """Returns 1 for a small network, else 0; it may not change in a resume."""
    name = config.model.model
    if name not in MODELS.names():
        return 0
    cost = MODELS.get(name).cost
    if cost is None:
        return 0
    multiplications = config.training.batch_size * cost(config)
    return int(multiplications < _MIN_MULTIPLICATIONS)


def refuse(
    config: RunConfig,
    flag: str,
    rule: str,
) -> ConfigError:
    """Makes the error for a flag that the decoder of a run cannot take.

    Args:
        config: The run.
        flag: The flag's name.
        rule: What its value must be, as `must be at least 2`.
    """
    rule = f"{rule} for the model {config.model.model}"
    return ConfigError(flag, rule, config.to_flags()[flag])


def count_convolution(config: RunConfig) -> int:
    """Returns the cost of a convolution of `--width` channels."""
    return 9 * config.model.width**2 * config.data.grid_size**2


def check_groups(
    config: RunConfig,
    dataset: Dataset,
) -> None:
    """Checks that `--groups` name each factor once.

    Raises:
        ConfigError: If they do not.
    """
    groups = config.model.groups
    try:
        parse_groups(groups, dataset.space)
    except ValueError as error:
        raise ConfigError("groups", str(error), groups) from error


def make_encoding(
    config: RunConfig,
    space: FactorSpace,
) -> keras.Layer:
    """Makes the layer `code` of a run, from factors [n, F] to units."""
    make = ENCODINGS.get(config.model.encoding).load()
    return make(config, space)


def make_input(dataset: Dataset) -> keras.KerasTensor:
    """Makes the input `factors` [n, F] of a decoder."""
    return keras.Input(
        (len(dataset.space),),
        dtype="float32",
        name="factors",
    )


def make_code(
    config: RunConfig,
    dataset: Dataset,
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Makes the input `factors` [n, F] of a decoder, and its code [n, U]."""
    factors = make_input(dataset)
    encoding = make_encoding(config, dataset.space)
    return factors, encoding(factors)


def make_grouped_code(
    config: RunConfig,
    dataset: Dataset,
) -> tuple[keras.KerasTensor, list[keras.KerasTensor]]:
    """Makes the input `factors`, and a code for each of `--groups`.

    Raises:
        ConfigError: If the encoding has no code of each factor.
    """
    factors = make_input(dataset)
    encoding = make_encoding(config, dataset.space)
    if not hasattr(encoding, "split"):
        rule = f"must have a code of each factor for {config.model.model}"
        raise ConfigError("encoding", rule, config.model.encoding)

    factor_codes = encoding.split(encoding(factors))
    group_codes = []
    for group in parse_groups(config.model.groups, dataset.space):
        members = [factor_codes[column] for column in group]
        group_codes.append(layers.Concatenate()(members))
    return factors, group_codes


def stack_groups(
    parts: list[keras.KerasTensor],
    name: str,
) -> keras.KerasTensor:
    """Stacks vectors [n, k] of K groups in a layer [n, K, k].

    Args:
        parts: The vectors.
        name: The name of the layer.
    """
    shape = (len(parts), parts[0].shape[-1])
    joined = layers.Concatenate()(parts)
    return layers.Reshape(shape, name=name)(joined)
