"""Positional code: sines and cosines of geometric wavelengths."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.encodings.factor_encoding import FactorEncoding


@keras.saving.register_keras_serializable(package="tfcomp")
class PositionalEncoding(FactorEncoding):
    """sin(w_k v) and cos(w_k v), v the factor in grid steps.

    The sinusoids of Vaswani et al. (2017): angular frequencies fall
    geometrically, w_k = max_wavelength^(-k / K), k = 0 .. K - 1. The code
    of a factor is as long as its grid (rounded up to even), so that it has
    the size of the bump and one-hot codes.

    Args:
        space: The factors.
        max_wavelength: Ratio of the longest to the shortest wavelength.
    """

    def __init__(
        self,
        space: FactorSpace | dict,
        max_wavelength: float = 10000.0,
        **kwargs,
    ) -> None:
        super().__init__(space, **kwargs)
        if max_wavelength <= 1:
            raise ValueError(
                f"max_wavelength must be greater than 1, got {max_wavelength}"
            )
        self.max_wavelength = max_wavelength

    def encode_factor(self, values: tf.Tensor, factor: Factor) -> tf.Tensor:
        count = self.code_size(factor) // 2
        frequencies = self.max_wavelength ** (-np.arange(count) / count)
        steps = (values - factor.low) / factor.step  # [n, 1]
        phases = steps * frequencies.astype(np.float32)  # [n, K]
        return tf.concat([tf.sin(phases), tf.cos(phases)], axis=-1)

    def code_size(self, factor: Factor) -> int:
        return 2 * ((factor.size + 1) // 2)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
        }


def make_positional(
    config: RunConfig, space: FactorSpace
) -> PositionalEncoding:
    """The positional code of a run."""
    return PositionalEncoding(space, name="code")
