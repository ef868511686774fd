"""One-hot code: one unit per grid value, exactly one active."""

from __future__ import annotations

import keras
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.encodings.factor_encoding import FactorEncoding
from tfcomp.models.encodings.factor_encoding import encode_one_hot


@keras.saving.register_keras_serializable(package="tfcomp")
class OneHotEncoding(FactorEncoding):
    """The unit of the nearest grid value is 1, all others are 0.

    The code is a step function of the factors: its derivative is useless,
    and geometry uses differences over the grid instead.
    """

    differentiable = False

    def encode_factor(self, values: tf.Tensor, factor: Factor) -> tf.Tensor:
        return encode_one_hot(values, factor)

    def code_size(self, factor: Factor) -> int:
        return factor.size


def make_one_hot(config: RunConfig, space: FactorSpace) -> OneHotEncoding:
    """The one-hot code of a run."""
    return OneHotEncoding(space, name="code")
