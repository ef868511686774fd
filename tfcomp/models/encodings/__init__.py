"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them. An absent factor
(NaN) is all zeros in a population code.

A builder is called as `make(config, space)` and returns the layer, which is
named `code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcomp.config.errors import ConfigError
from tfcomp.config.registry import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace, parse_groups

if TYPE_CHECKING:
    import keras

ENCODINGS = Registry("encoding")
for _name, _class in {
    "bump": "population_codes:BumpEncoding",
    "one_hot": "population_codes:OneHotEncoding",
    "positional": "population_codes:PositionalEncoding",
    "circle": "scalar_codes:CircleEncoding",
    "ramp": "scalar_codes:RampEncoding",
}.items():
    ENCODINGS.register(_name, f"tfcomp.models.encodings.{_class}.of_run")


def make_encoding(config: RunConfig, space: FactorSpace) -> keras.layers.Layer:
    """The encoding that a run asks for; imports TensorFlow."""
    return ENCODINGS.get(config.model.encoding).load()(config, space)


def make_code(
    config: RunConfig, dataset: Dataset
) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """How decoders begin: the input `factors` [n, F], and their code."""
    import keras

    space = dataset.space
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    return factors, make_encoding(config, space)(factors)


def stack_groups(
    parts: list[keras.KerasTensor], name: str
) -> keras.KerasTensor:
    """Vectors [n, k] of K groups as a layer [n, K, k] of this name."""
    import keras

    shape = (len(parts), parts[0].shape[-1])
    joined = keras.layers.Concatenate()(parts)
    return keras.layers.Reshape(shape, name=name)(joined)


def make_grouped_code(
    config: RunConfig, dataset: Dataset
) -> tuple[keras.KerasTensor, list[keras.KerasTensor]]:
    """As `make_code`, with a code for each of `--groups` by itself."""
    import keras

    space = dataset.space
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    encoding = make_encoding(config, space)
    if not hasattr(encoding, "split"):
        rule = f"must have a code of each factor for {config.model.model}"
        raise ConfigError("encoding", rule, config.model.encoding)
    codes = encoding.split(encoding(factors))
    return factors, [
        keras.layers.Concatenate()([codes[column] for column in group])
        for group in parse_groups(config.model.groups, space)
    ]
