"""Codes of one or two numbers per factor."""

import math
from typing import Self

import keras
from keras import KerasTensor, ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.models.encodings.base import FactorEncoding, nearest_index

RANGES = ("signed", "unit", "raw")


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
        if scaled_to not in RANGES:
            rule = f"scaled_to must be one of {RANGES}"
            raise ValueError(f"{rule}, got {scaled_to!r}")
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
        return {
            **super().get_config(),
            "scaled_to": self.scaled_to,
            "absent_value": self.absent_value,
        }


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
