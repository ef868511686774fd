"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them.
"""

import itertools
import math
from typing import Self

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor, FactorSpace

Space = FactorSpace | dict


def nearest_index(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Returns the nearest grid index, a float in 0 .. size - 1."""
    if factor.levels:
        if factor.periodic:
            values = _wrap(values, factor)
        distance = ops.abs(ops.subtract(values[..., None], factor.values()))
        is_nearest = distance == ops.min(distance, axis=-1, keepdims=True)
        # `ops.argmin` has a Bitcast, which other formats lack.
        index = ops.where(is_nearest, np.arange(factor.size), factor.size - 1)
        return ops.cast(ops.min(index, axis=-1), values.dtype)
    index = ops.round((values - factor.low) / factor.step)
    if factor.periodic:
        index = ops.mod(index, float(factor.size))
    return ops.clip(index, 0.0, factor.size - 1.0)


def _wrap(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Moves values outside of the levels by periods to the nearest one."""
    first, last = factor.values()[[0, -1]]
    start, period = factor.find_wrap()
    moved = start + ops.mod(values - start, period)
    is_outside = ops.logical_or(values < first, values > last)
    return ops.where(is_outside, moved, values)


def encode_one_hot(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Returns 1 for the nearest grid value, 0 for all others, [n, size]."""
    index = nearest_index(values[:, 0], factor)
    return ops.one_hot(ops.cast(index, "int32"), factor.size)


class FactorEncoding(keras.layers.Layer):
    """Base of encodings: codes of factors [n, F], NaN where absent, in a row.

    A subclass has `encode_factor`, the code [n, code_size] of present values
    [n, 1] of a factor. A differentiable encoding gives a categorical factor,
    which has no order, a one-hot code. The layer always computes in float32:
    positions do not fit into 8 bits of mantissa.
    """

    options: tuple[str, ...] = ()  # arguments of a subclass
    differentiable = True  # False if the derivative is 0 or undefined
    absent_value = 0.0  # of every unit of an absent factor

    def __init__(self, space: Space, **kwargs) -> None:
        super().__init__(**kwargs | {"dtype": "float32"})
        if isinstance(space, dict):
            space = FactorSpace.from_dict(space)
        self.space = space

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        return cls(space, name="code")

    def code_size(self, factor: Factor) -> int:
        return factor.size

    @property
    def code_sizes(self) -> list[int]:
        is_named = self._has_names
        return [
            f.size if is_named(f) else self.code_size(f) for f in self.space
        ]

    def split(self, code: KerasTensor) -> list[KerasTensor]:
        """Splits a code [n, sum of code sizes] into codes of factors."""
        ends = [0, *itertools.accumulate(self.code_sizes)]
        return [code[:, start:end] for start, end in itertools.pairwise(ends)]

    def call(self, factors: KerasTensor) -> KerasTensor:
        codes = []
        for column, factor in enumerate(self.space):
            values = factors[:, column : column + 1]
            absent = ops.isnan(values)
            # The inner `where` keeps NaN out of the gradient as well.
            present = ops.where(absent, ops.zeros_like(values), values)
            if self._has_names(factor):
                code, other = encode_one_hot(present, factor), 0.0
            else:
                code = self.encode_factor(present, factor)
                other = self.absent_value
            codes.append(ops.where(absent, other, code))
        return ops.concatenate(codes, axis=-1)

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return (input_shape[0], sum(self.code_sizes))

    def _has_names(self, factor: Factor) -> bool:
        return factor.categorical and self.differentiable

    def get_config(self) -> dict:
        own = {name: getattr(self, name) for name in self.options}
        config = super().get_config() | {"space": self.space.to_dict()} | own
        return {k: v for k, v in config.items() if k != "dtype"}


@keras.saving.register_keras_serializable(package="tfcomp")
class BumpEncoding(FactorEncoding):
    """Units of activity exp(-(f - v_i)^2 / 2 s^2), v_i a grid value.

    The tuning width s = `sigma` is in grid steps (section 3.1).
    """

    options = ("sigma",)

    def __init__(self, space: Space, sigma: float = 1.0, **kwargs) -> None:
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


@keras.saving.register_keras_serializable(package="tfcomp")
class OneHotEncoding(FactorEncoding):
    """The unit of the nearest grid value is 1, all others are 0."""

    differentiable = False

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        return encode_one_hot(values, factor)


@keras.saving.register_keras_serializable(package="tfcomp")
class PositionalEncoding(FactorEncoding):
    """sin(w_k v) and cos(w_k v), v the factor in grid steps.

    As of Vaswani et al. (2017), w_k = max_wavelength^(-k / K), k = 0 .. K - 1.
    """

    options = ("max_wavelength",)

    def __init__(
        self, space: Space, max_wavelength: float = 10000.0, **kwargs
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


@keras.saving.register_keras_serializable(package="tfcomp")
class RampEncoding(FactorEncoding):
    """A value in [-1, 1] (signed), in [0, 1] (unit), or raw (section 3.1)."""

    options = ("scaled_to", "absent_value")

    def __init__(
        self,
        space: Space,
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


@keras.saving.register_keras_serializable(package="tfcomp")
class CircleEncoding(FactorEncoding):
    """cos and sin of a periodic factor (appendix F.2), or else a ramp."""

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
    """The nearest grid index of every factor, NaN where it is absent."""

    differentiable = False
    absent_value = float("nan")

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        return nearest_index(values, factor)

    def code_size(self, factor: Factor) -> int:
        return 1
