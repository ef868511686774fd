"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them. An absent factor
(NaN) is all zeros in a population code.

A builder is called as `make(config, space)` and returns the layer, which is
named `code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcomp.config.registry import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import FactorSpace

if TYPE_CHECKING:
    import keras

ENCODINGS = Registry("encoding")
for _codes, _names in {
    "population_codes": ("bump", "one_hot", "positional"),
    "scalar_codes": ("circle", "ramp"),
}.items():
    for _name in _names:
        _module = f"tfcomp.models.encodings.{_codes}"
        ENCODINGS.register(_name, f"{_module}:make_{_name}")


def make_encoding(config: RunConfig, space: FactorSpace) -> keras.layers.Layer:
    """The encoding that a run asks for; imports TensorFlow."""
    return ENCODINGS.get(config.model.encoding).load()(config, space)
