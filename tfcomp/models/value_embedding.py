"""Layers in which every value of a factor owns a matrix."""

import contextlib
from collections.abc import Iterator
from typing import Self

import keras
from keras import KerasTensor, ops

Size = int | tuple[int, int]
# Rows of a weight up to which a product costs less than a scatter.
MOST_ROWS = 1024
# A shorter vector is divided by this, which bounds the gradient at a zero one.
_LENGTH_FLOOR = 1e-6
_by_product = False


@contextlib.contextmanager
def use_products() -> Iterator[None]:
    """Makes functions that are traced in the block look rows up by products.

    The gradient of `take` is a scatter, which deterministic kernels of a GPU
    add row by row. Replicas are traced in threads: all are affected.
    """
    global _by_product
    before, _by_product = _by_product, True
    try:
        yield
    finally:
        _by_product = before


def take_rows(weight: KerasTensor, rows: KerasTensor) -> KerasTensor:
    """Returns rows [batch, ...] of a weight [V, ...] by their indices."""
    if not _by_product or weight.shape[0] > MOST_ROWS:
        return ops.take(weight, rows, axis=0)
    code = ops.one_hot(rows, weight.shape[0], dtype=weight.dtype)  # [batch, V]
    return ops.tensordot(code, weight, axes=1)


class ValueEmbedding(keras.layers.Layer):
    """Base of layers in which every value of a factor owns an image.

    A subclass has the largest `rank` R of a matrix, `matrices()` of all values
    [V, rows, columns], and `look_up` of indices [batch], zero unless `valid`.
    Inputs are a `"code"` [batch, V], which mixes matrices, or the `"index"` of
    a value, where NaN and indices outside the range give the zero matrix.
    """

    def __init__(
        self, num_values: int, size: Size, inputs: str = "index", **kwargs
    ) -> None:
        # Keras would cast the input to the compute dtype, and bfloat16 does
        # not tell index 257 from 256. Only the output has that dtype.
        super().__init__(autocast=False, **kwargs)
        self.num_values, self.inputs = num_values, inputs
        rows, columns = (size, size) if isinstance(size, int) else size
        self.size = (rows, columns)

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
        return super().get_config() | {
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


def list_embeddings(model: keras.Model) -> dict[str, ValueEmbedding]:
    """Returns the layers in which values own images, by their factor."""
    return {
        layer.name.removeprefix("embedding_"): layer
        for layer in model.layers
        if isinstance(layer, ValueEmbedding)
    }


@keras.saving.register_keras_serializable(package="tfcomp")
class LowRankEmbedding(ValueEmbedding):
    """Looks up a low-rank matrix for every value of a factor.

    The value i owns (section 4.1 and appendix C of the paper, equation 8)

        M_i = sum_r lambda_ir u_ir v_ir^T

    with `rank` modes r. `u` and `v` are the weights `left` [V, R, rows] and
    `right` [V, R, columns] scaled to unit length (at least 1e-6), so that
    `lambda` [V, R] alone carries the size of a mode. Modes may be parallel, and
    `lambda` are not singular values: see `spectrum`.
    """

    def __init__(
        self,
        num_values: int,
        size: Size,
        rank: int,
        inputs: str = "index",
        coefficient_regularizer: object = None,
        left_regularizer: object = None,
        right_regularizer: object = None,
        **kwargs,
    ) -> None:
        super().__init__(num_values, size, inputs, **kwargs)
        self.rank, get = rank, keras.regularizers.get
        self.regularizers = {
            "coefficient_regularizer": get(coefficient_regularizer),
            "left_regularizer": get(left_regularizer),
            "right_regularizer": get(right_regularizer),
        }

    def build(self, input_shape: tuple) -> None:
        first = (self.num_values, self.rank)
        shapes = {
            "coefficients": first,
            "left": (*first, self.size[0]),
            "right": (*first, self.size[1]),
        }
        self.coefficients, self.left, self.right = (
            self.add_weight(
                shape,
                keras.initializers.RandomNormal(stddev=shape[-1] ** -0.5),
                regularizer=regularizer,
                name=name,
            )
            for (name, shape), regularizer in zip(
                shapes.items(), self.regularizers.values(), strict=True
            )
        )

    def look_up(self, rows: KerasTensor, valid: KerasTensor) -> KerasTensor:
        coefficients = take_rows(self.coefficients, rows)
        return self._render(
            ops.where(valid[:, None], coefficients, 0.0),  # [batch, R]
            take_rows(self.left, rows),  # [batch, R, rows]
            take_rows(self.right, rows),  # [batch, R, columns]
        )

    def matrices(self) -> KerasTensor:
        weights = (self.coefficients, self.left, self.right)
        return self._render(*map(ops.convert_to_tensor, weights))

    def get_config(self) -> dict:
        own = {
            name: keras.regularizers.serialize(value)
            for name, value in self.regularizers.items()
        }
        return super().get_config() | {"rank": self.rank} | own

    @classmethod
    def from_config(cls, config: dict) -> Self:
        # Models of earlier versions have them: None, None and False.
        for name in ("coefficient_initializer", "vector_initializer"):
            config.pop(name, None)
        if config.pop("orthogonal", False):
            raise ValueError("orthogonal modes ended with version 0.1")
        return super().from_config(config)

    def _render(
        self, coefficients: KerasTensor, left: KerasTensor, right: KerasTensor
    ) -> KerasTensor:
        # The lengths go into one factor per mode: scaling each vector first
        # costs more passes over the large tensors.
        scale = coefficients[..., None]  # [n, R, 1]
        scale = scale * _inverse_length(left) * _inverse_length(right)
        # Not `ops.matmul` of a transpose, whose gradient moves a copy.
        return ops.einsum("nri,nrj->nij", left * scale, right)


def _inverse_length(vectors: KerasTensor) -> KerasTensor:
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return ops.rsqrt(ops.maximum(squares, _LENGTH_FLOOR**2))  # [n, R, 1]
