"""Layers in which every value of a factor owns a matrix."""

import contextlib
from collections.abc import Iterator

import keras
from keras import KerasTensor, ops

Size = int | tuple[int, int]
# Rows of a weight up to which a product costs less than a scatter.
MOST_ROWS = 1024
_by_product = False


@contextlib.contextmanager
def use_products() -> Iterator[None]:
    """Lets what is traced inside of the block look rows up by products.

    The gradient of `take` is a scatter, which deterministic kernels of a GPU
    add row by row. That of a product is a product. All threads are affected,
    since a distribution strategy traces replicas in threads of its own.
    """
    global _by_product
    before, _by_product = _by_product, True
    try:
        yield
    finally:
        _by_product = before


def take_rows(weight: KerasTensor, rows: KerasTensor) -> KerasTensor:
    """Returns rows [batch, ...] of a weight [V, ...] by their indices.

    The values are the same in both forms. Gradients add up in another order.
    """
    if not _by_product or weight.shape[0] > MOST_ROWS:
        return ops.take(weight, rows, axis=0)
    code = ops.one_hot(rows, weight.shape[0], dtype=weight.dtype)  # [batch, V]
    return ops.tensordot(code, weight, axes=1)


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
        self.num_values = num_values
        rows, columns = (size, size) if isinstance(size, int) else size
        self.size = (rows, columns)
        if inputs not in ("index", "code"):
            raise ValueError(f"inputs must be index or code, got {inputs!r}")
        self.inputs = inputs

    def build(self, input_shape: tuple) -> None:
        is_code = self.inputs == "code"
        possible = [(self.num_values,)] if is_code else [(), (1,)]
        if tuple(input_shape[1:]) not in possible:
            rule = f"input must be [batch] and {possible[-1]}"
            raise ValueError(f"{rule}, got the shape {input_shape}")

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
