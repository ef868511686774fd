"""A matrix for every value of a factor: how a value is looked up."""

import keras
import numpy as np
from keras import ops

_INPUTS = ("index", "code")


class ValueEmbedding(keras.layers.Layer):
    """Base of layers in which every value of a factor owns an image.

    A subclass makes its weights in `build`, implements `look_up` and
    `matrices`, and has the largest `rank` R of a matrix.

    Args:
        num_values: Number of values V of the factor.
        size: Rows and columns of a matrix: a pair, or one number for both.
        inputs: `"index"` looks up the index of a value, at a cost that does
            not grow with `num_values`; `"code"` mixes all the matrices with
            the weights of a one-hot or soft code, differentiably.

    Input shape:
        `"index"`: `[batch]` or `[batch, 1]`, integer, or float, which is
        rounded to the nearest. NaN and indices outside the range stand for
        an absent factor and give the zero matrix.
        `"code"`: `[batch, num_values]`.

    Output shape:
        `[batch, rows, columns]`.
    """

    def __init__(
        self,
        num_values: int,
        size: int | tuple[int, int],
        inputs: str = "index",
        **kwargs,
    ) -> None:
        # Keras would cast the input to the compute dtype, and bfloat16 does
        # not tell index 257 from 256. Only the output has that dtype.
        super().__init__(autocast=False, **kwargs)
        self.num_values = check_positive("num_values", num_values)
        self.size = _check_size(size)
        if inputs not in _INPUTS:
            raise ValueError(f"inputs must be index or code, got {inputs!r}")
        self.inputs = inputs

    def build(self, input_shape: tuple) -> None:
        self._check_input_shape(tuple(input_shape))

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        if self.inputs == "index":
            matrices = self.look_up(*self._find(ops.reshape(inputs, (-1,))))
        else:
            code = ops.cast(inputs, self.variable_dtype)  # [batch, V]
            matrices = ops.tensordot(code, self.matrices(), axes=1)
        return ops.cast(matrices, self.compute_dtype)

    def look_up(
        self, rows: keras.KerasTensor, valid: keras.KerasTensor
    ) -> keras.KerasTensor:
        """The matrices [batch, rows, columns] of values of indices [batch].

        They must be zero where `valid` [batch] is False.
        """
        raise NotImplementedError

    def matrices(self) -> keras.KerasTensor:
        """The matrices of all values `[V, rows, columns]`."""
        raise NotImplementedError

    def spectrum(self) -> keras.KerasTensor:
        """Singular values `[V, R]` of the matrices, largest first."""
        return ops.svd(self.matrices(), compute_uv=False)[:, : self.rank]

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return (input_shape[0], *self.size)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_values": self.num_values,
            "size": list(self.size),
            "inputs": self.inputs,
        }

    def _check_input_shape(self, shape: tuple) -> None:
        if self.inputs == "code":
            expected = f"[batch, {self.num_values}]"
            fits = len(shape) == 2 and shape[1] == self.num_values
        else:
            expected = "[batch] or [batch, 1]"
            fits = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
        if not fits:
            raise ValueError(
                f"the shape of the input must be {expected} for "
                f"inputs={self.inputs!r}, got {shape}"
            )

    def _find(
        self, index: keras.KerasTensor
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        if keras.backend.is_float_dtype(index.dtype):
            index = ops.round(index)
        else:
            index = ops.cast(index, "int64")
        # NaN compares false; checked before the cast, which may wrap around.
        valid = ops.logical_and(index >= 0, index <= self.num_values - 1)
        rows = ops.where(valid, index, ops.zeros_like(index))
        return ops.cast(rows, "int32"), valid


def check_positive(name: str, value: int) -> int:
    """An integer above 0.

    Raises:
        ValueError: For anything else.
    """
    integer = isinstance(value, (int, np.integer))
    if not integer or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer above 0, got {value!r}")
    return int(value)


def _check_size(size: int | tuple[int, int]) -> tuple[int, int]:
    sides = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
    if len(sides) != 2:
        raise ValueError(f"size must be one number or a pair, got {size!r}")
    rows, columns = (check_positive("size", side) for side in sides)
    return rows, columns
