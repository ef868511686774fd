"""Codes of factors: population codes, and one or two numbers per factor."""

import math
from typing import Self

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.models.encodings.base import (
    FactorEncoding,
    encode_one_hot,
    nearest_index,
)


@keras.saving.register_keras_serializable(package="tfcomp")
class BumpEncoding(FactorEncoding):
    """Units with Gaussian tuning, one per grid value v_i (section 3.1).

    Their activity is exp(-(f - v_i)^2 / 2 s^2), with the tuning width s =
    `sigma` in grid steps of the factor (pixels, for a position).
    """

    def __init__(
        self, space: FactorSpace | dict, sigma: float = 1.0, **kwargs
    ) -> None:
        super().__init__(space, **kwargs)
        self.sigma = sigma

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        sigma = config.model.code_width or config.data.sigma
        return cls(space, sigma, name="code")

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        distance = ops.subtract(values, factor.values())  # [n, size]
        if factor.periodic:
            period = factor.high - factor.low
            distance -= period * ops.round(distance / period)
        return ops.exp(-0.5 * ops.square(distance / (self.sigma * factor.step)))

    def get_config(self) -> dict:
        return {**super().get_config(), "sigma": self.sigma}


@keras.saving.register_keras_serializable(package="tfcomp")
class OneHotEncoding(FactorEncoding):
    """The unit of the nearest grid value is 1, all others are 0.

    Its derivative is useless: geometry uses differences over the grid instead.
    """

    differentiable = False

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        return encode_one_hot(values, factor)


@keras.saving.register_keras_serializable(package="tfcomp")
class PositionalEncoding(FactorEncoding):
    """sin(w_k v) and cos(w_k v), v the factor in grid steps.

    As of Vaswani et al. (2017), w_k = max_wavelength^(-k / K), k = 0 .. K - 1.
    The code is as long as the factor's grid, rounded up to even.
    """

    def __init__(
        self,
        space: FactorSpace | dict,
        max_wavelength: float = 10000.0,
        **kwargs,
    ) -> None:
        super().__init__(space, **kwargs)
        self.max_wavelength = max_wavelength

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        count = self.code_size(factor) // 2
        frequencies = self.max_wavelength ** (-np.arange(count) / count)
        steps = (values - factor.low) / factor.step  # [n, 1]
        phases = ops.multiply(steps, frequencies.astype(np.float32))  # [n, K]
        return ops.concatenate([ops.sin(phases), ops.cos(phases)], axis=-1)

    def code_size(self, factor: Factor) -> int:
        return 2 * ((factor.size + 1) // 2)

    def get_config(self) -> dict:
        return {**super().get_config(), "max_wavelength": self.max_wavelength}


@keras.saving.register_keras_serializable(package="tfcomp")
class RampEncoding(FactorEncoding):
    """A factor's value scaled to a fixed range (section 3.1).

    To [-1, 1] ("signed"), to [0, 1] ("unit"), or not at all ("raw"), as the
    published code has it. `absent_value` stands for an absent factor.
    """

    def __init__(
        self,
        space: FactorSpace | dict,
        scaled_to: str = "signed",
        absent_value: float = 0.0,
        **kwargs,
    ) -> None:
        super().__init__(space, **kwargs)
        self.scaled_to = scaled_to
        self.absent_value = absent_value

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        model = config.model
        return cls(space, model.ramp_range, model.absent_value, name="code")

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        if self.scaled_to == "raw":
            return values
        unit = (values - factor.low) / (factor.high - factor.low)
        return unit if self.scaled_to == "unit" else 2.0 * unit - 1.0

    def code_size(self, factor: Factor) -> int:
        return 1

    def get_config(self) -> dict:
        own = {"scaled_to": self.scaled_to, "absent_value": self.absent_value}
        return super().get_config() | own


@keras.saving.register_keras_serializable(package="tfcomp")
class CircleEncoding(FactorEncoding):
    """cos and sin of a periodic factor: no jump where it wraps (appendix F.2).

    A factor that is not periodic is scaled to [-1, 1], as in the ramp code;
    a categorical one is one-hot.
    """

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        unit = (values - factor.low) / (factor.high - factor.low)
        if not factor.periodic:
            return 2.0 * unit - 1.0
        phase = 2.0 * math.pi * unit
        return ops.concatenate([ops.cos(phase), ops.sin(phase)], axis=-1)

    def code_size(self, factor: Factor) -> int:
        return 2 if factor.periodic else 1


@keras.saving.register_keras_serializable(package="tfcomp")
class FactorIndex(FactorEncoding):
    """The nearest grid index of every factor, NaN where it is absent.

    It stands for a one-hot code that would only select a row of a table.
    """

    differentiable = False
    absent_value = float("nan")

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        return nearest_index(values, factor)

    def code_size(self, factor: Factor) -> int:
        return 1
