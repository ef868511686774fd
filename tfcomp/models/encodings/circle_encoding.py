"""Circle code: a periodic factor as a point on a circle (appendix F.2)."""

from __future__ import annotations

import math

import keras
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.encodings.factor_encoding import FactorEncoding


@keras.saving.register_keras_serializable(package="tfcomp")
class CircleEncoding(FactorEncoding):
    """cos and sin of every periodic factor, without a jump where it wraps.

    A factor that is not periodic is scaled to [-1, 1], as in the ramp code;
    a categorical one is one-hot.
    """

    def encode_factor(self, values: tf.Tensor, factor: Factor) -> tf.Tensor:
        unit = (values - factor.low) / (factor.high - factor.low)
        if not factor.periodic:
            return 2.0 * unit - 1.0
        phase = 2.0 * math.pi * unit
        return tf.concat([tf.cos(phase), tf.sin(phase)], axis=-1)

    def code_size(self, factor: Factor) -> int:
        return 2 if factor.periodic else 1


def make_circle(config: RunConfig, space: FactorSpace) -> CircleEncoding:
    """The circle code of a run."""
    return CircleEncoding(space, name="code")
