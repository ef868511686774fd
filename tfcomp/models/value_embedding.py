"""A matrix for every value of a factor: how a value is looked up."""

import keras
import numpy as np
from keras import KerasTensor, ops

Size = int | tuple[int, int]


class ValueEmbedding(keras.layers.Layer):
    """Base of layers in which every value of a factor owns an image.

    A subclass makes its weights in `build`, and has the largest `rank` R of a
    matrix, `matrices()` of all values [V, rows, columns], and `look_up`: those
    of the rows of indices [batch], zero where they are not `valid`.

    Args:
        num_values: Number of values V of the factor.
        size: Rows and columns of a matrix: a pair, or one number for both.
        inputs: `"code"` mixes all the matrices with the weights [batch, V] of a
            one-hot or soft code, differentiably. `"index"` looks up the index
            of a value, [batch] or [batch, 1], at a cost that does not grow with
            V. Floats are rounded; NaN and indices outside the range stand for
            an absent factor and give the zero matrix.
    """

    def __init__(
        self, num_values: int, size: Size, inputs: str = "index", **kwargs
    ) -> None:
        # Keras would cast the input to the compute dtype, and bfloat16 does
        # not tell index 257 from 256. Only the output has that dtype.
        super().__init__(autocast=False, **kwargs)
        self.num_values = check_positive("num_values", num_values)
        sides = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
        if len(sides) != 2:
            raise ValueError(f"size must be one number or a pair, got {size!r}")
        rows, columns = (check_positive("size", side) for side in sides)
        self.size = (rows, columns)
        if inputs not in ("index", "code"):
            raise ValueError(f"inputs must be index or code, got {inputs!r}")
        self.inputs = inputs

    def build(self, input_shape: tuple) -> None:
        shape, units = tuple(input_shape), self.num_values
        expected, possible = f"[batch, {units}]", [(units,)]
        if self.inputs == "index":
            expected, possible = "[batch] or [batch, 1]", [(), (1,)]
        if shape[1:] not in possible or not shape:
            raise ValueError(
                f"the shape of the input must be {expected} for "
                f"inputs={self.inputs!r}, got {shape}"
            )

    def call(self, inputs: KerasTensor) -> KerasTensor:
        if self.inputs == "index":
            matrices = self.look_up(*self._find(ops.reshape(inputs, (-1,))))
        else:
            code = ops.cast(inputs, self.variable_dtype)  # [batch, V]
            matrices = ops.tensordot(code, self.matrices(), axes=1)
        return ops.cast(matrices, self.compute_dtype)

    def spectrum(self) -> KerasTensor:
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

    def _find(self, index: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        is_float = keras.backend.is_float_dtype(index.dtype)
        index = ops.round(index) if is_float else ops.cast(index, "int64")
        # NaN compares false; checked before the cast, which may wrap around.
        valid = ops.logical_and(index >= 0, index <= self.num_values - 1)
        rows = ops.where(valid, index, ops.zeros_like(index))
        return ops.cast(rows, "int32"), valid


def check_positive(name: str, value: int) -> int:
    """The integer above 0; a ValueError for anything else."""
    integer = isinstance(value, (int, np.integer))
    if not integer or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer above 0, got {value!r}")
    return int(value)
