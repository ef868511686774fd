"""Bump code: a population of units with Gaussian tuning (section 3.1)."""

from __future__ import annotations

import keras
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.encodings.factor_encoding import FactorEncoding


@keras.saving.register_keras_serializable(package="tfcomp")
class BumpEncoding(FactorEncoding):
    """One unit per grid value v_i, with activity exp(-(f - v_i)^2 / 2 s^2).

    Args:
        space: The factors.
        sigma: Tuning width s in grid steps of the factor (pixels, for a
            position).
    """

    def __init__(
        self, space: FactorSpace | dict, sigma: float = 1.0, **kwargs
    ) -> None:
        super().__init__(space, **kwargs)
        if sigma <= 0:
            raise ValueError(f"sigma must be greater than 0, got {sigma}")
        self.sigma = sigma

    def encode_factor(self, values: tf.Tensor, factor: Factor) -> tf.Tensor:
        distance = values - factor.values()  # [n, size]
        if factor.periodic:
            period = factor.high - factor.low
            distance -= period * tf.round(distance / period)
        return tf.exp(-0.5 * tf.square(distance / (self.sigma * factor.step)))

    def code_size(self, factor: Factor) -> int:
        return factor.size

    def get_config(self) -> dict:
        return {**super().get_config(), "sigma": self.sigma}


def make_bump(config: RunConfig, space: FactorSpace) -> BumpEncoding:
    """The bump code of a run, as wide as the bump in the image."""
    return BumpEncoding(space, config.data.sigma, name="code")
