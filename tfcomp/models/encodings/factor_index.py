"""Indices: a factor's place on its grid, for lookup tables."""

from __future__ import annotations

import keras
import tensorflow as tf

from tfcomp.datasets.factors import Factor
from tfcomp.models.encodings.factor_encoding import FactorEncoding
from tfcomp.models.encodings.factor_encoding import nearest_index


@keras.saving.register_keras_serializable(package="tfcomp")
class FactorIndex(FactorEncoding):
    """The nearest grid index of every factor, NaN where it is absent.

    It stands for a one-hot code where that would only select a row.
    Like a one-hot code it is a step function of the factors.
    """

    differentiable = False

    def encode_factor(self, values: tf.Tensor, factor: Factor) -> tf.Tensor:
        return nearest_index(values, factor)

    def code_size(self, factor: Factor) -> int:
        return 1

    def absent_code(self) -> float:
        return float("nan")
