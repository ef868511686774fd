"""What all encodings share: a code per factor, codes side by side."""

import itertools
from typing import Self

import keras
from keras import KerasTensor, ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor, FactorSpace


def nearest_index(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Nearest grid index of present values, a float in 0 .. size - 1."""
    if factor.levels:
        distance = ops.abs(ops.subtract(values[..., None], factor.values()))
        return ops.cast(ops.argmin(distance, axis=-1), values.dtype)
    index = ops.round((values - factor.low) / factor.step)
    if factor.periodic:
        index = ops.mod(index, float(factor.size))
    return ops.clip(index, 0.0, factor.size - 1.0)


def encode_one_hot(values: KerasTensor, factor: Factor) -> KerasTensor:
    """1 for the nearest grid value, 0 for all others, [n, size]."""
    index = nearest_index(values[:, 0], factor)
    return ops.one_hot(ops.cast(index, "int32"), factor.size)


class FactorEncoding(keras.layers.Layer):
    """Base of encodings: concatenates `encode_factor` over the factors.

    A categorical factor has no order that a code could keep: a
    differentiable encoding gives it a one-hot code beside its own.

    A subclass implements `encode_factor` for present values and, if it does
    not have one unit per grid value, `code_size`. The layer always computes
    in float32, also under a mixed precision policy: positions do not fit
    into 8 bits of mantissa.

    Input shape: [n, F] factor values, NaN where absent.
    Output shape: [n, sum of code sizes].

    Attributes:
        differentiable: Whether the code has a useful derivative with
            respect to the factors.
        absent_value: The activity of every unit of an absent factor.
    """

    differentiable = True
    absent_value = 0.0

    def __init__(self, space: FactorSpace | dict, **kwargs) -> None:
        kwargs["dtype"] = "float32"
        super().__init__(**kwargs)
        if isinstance(space, dict):
            space = FactorSpace.from_dict(space)
        self.space = space

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Code [n, code_size(factor)] of present values [n, 1]."""
        raise NotImplementedError

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        """The code of a run."""
        return cls(space, name="code")

    def code_size(self, factor: Factor) -> int:
        """Number of units that encode the factor."""
        return factor.size

    @property
    def code_sizes(self) -> list[int]:
        """Lengths of the codes that stand side by side, one per factor."""
        return [
            f.size if self._has_names(f) else self.code_size(f)
            for f in self.space
        ]

    def split(self, code: KerasTensor) -> list[KerasTensor]:
        """The code [n, sum of code sizes] of every factor by itself."""
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
                code = encode_one_hot(present, factor)
                codes.append(ops.where(absent, 0.0, code))
                continue
            code = self.encode_factor(present, factor)
            codes.append(ops.where(absent, self.absent_value, code))
        return ops.concatenate(codes, axis=-1)

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return (input_shape[0], sum(self.code_sizes))

    def _has_names(self, factor: Factor) -> bool:
        return factor.categorical and self.differentiable

    def get_config(self) -> dict:
        config = super().get_config()
        config.pop("dtype", None)
        return {**config, "space": self.space.to_dict()}
