"""Base of encodings, and the first layers of decoders."""

import itertools
from typing import Self

import keras
from keras import KerasTensor, ops

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace, parse_groups
from tfcomp.models.encodings import ENCODINGS


def make_encoding(config: RunConfig, space: FactorSpace) -> keras.layers.Layer:
    """Returns the encoding of a run."""
    return ENCODINGS.get(config.model.encoding).load()(config, space)


def make_input(dataset: Dataset) -> KerasTensor:
    """Returns the input `factors` [n, F] of a decoder."""
    size = len(dataset.space)
    return keras.Input((size,), dtype="float32", name="factors")


def make_code(
    config: RunConfig, dataset: Dataset
) -> tuple[KerasTensor, KerasTensor]:
    """Returns the input `factors` [n, F] of a decoder, and its code."""
    factors = make_input(dataset)
    return factors, make_encoding(config, dataset.space)(factors)


def make_grouped_code(
    config: RunConfig, dataset: Dataset
) -> tuple[KerasTensor, list[KerasTensor]]:
    """Returns the input `factors`, and a code for each of `--groups`."""
    factors, space = make_input(dataset), dataset.space
    encoding = make_encoding(config, space)
    if not hasattr(encoding, "split"):
        rule = f"must have a code of each factor for {config.model.model}"
        raise ConfigError("encoding", rule, config.model.encoding)
    codes = encoding.split(encoding(factors))
    return factors, [
        keras.layers.Concatenate()([codes[column] for column in group])
        for group in parse_groups(config.model.groups, space)
    ]


def stack_groups(parts: list[KerasTensor], name: str) -> KerasTensor:
    """Stacks vectors [n, k] of K groups in a layer [n, K, k]."""
    shape = (len(parts), parts[0].shape[-1])
    joined = keras.layers.Concatenate()(parts)
    return keras.layers.Reshape(shape, name=name)(joined)


def nearest_index(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Returns the nearest grid index of values, a float in 0 .. size - 1."""
    if factor.levels:
        distance = ops.abs(ops.subtract(values[..., None], factor.values()))
        return ops.cast(ops.argmin(distance, axis=-1), values.dtype)
    index = ops.round((values - factor.low) / factor.step)
    if factor.periodic:
        index = ops.mod(index, float(factor.size))
    return ops.clip(index, 0.0, factor.size - 1.0)


def encode_one_hot(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Returns 1 for the nearest grid value, 0 for all others, [n, size]."""
    index = nearest_index(values[:, 0], factor)
    return ops.one_hot(ops.cast(index, "int32"), factor.size)


class FactorEncoding(keras.layers.Layer):
    """Base of encodings: codes of factors [n, F], NaN where absent, in a row.

    A subclass has `encode_factor`, the code [n, code_size] of present values
    [n, 1] of a factor, and, unless there is one unit per grid value, its
    `code_size`. A categorical factor has no order that a code could keep: a
    differentiable encoding gives it a one-hot code beside its own.

    The layer always computes in float32, also under a mixed precision policy:
    positions do not fit into 8 bits of mantissa.
    """

    differentiable = True  # False if the derivative is 0 or undefined
    absent_value = 0.0  # of every unit of an absent factor

    def __init__(self, space: FactorSpace | dict, **kwargs) -> None:
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
        config = super().get_config() | {"space": self.space.to_dict()}
        return {k: v for k, v in config.items() if k != "dtype"}
