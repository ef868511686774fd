"""Layers in which every value of a factor owns a matrix."""

import contextlib
from collections.abc import Iterator
from typing import Any, Self

import keras
from keras import KerasTensor, ops

Size = int | tuple[int, int]
# Rows of a weight up to which a product costs less than a scatter.
MOST_ROWS = 1024
# A shorter vector is divided by this, which bounds the gradient at a zero one.
LENGTH_FLOOR = 1e-6
_by_product = False


@contextlib.contextmanager
def use_products() -> Iterator[None]:
    """Makes functions that are traced in the block look rows up by products.

    The gradient of `take` is a scatter, which deterministic kernels of a GPU
    add row by row. Replicas are traced in threads: all are affected.
    """
    global _by_product
    before = _by_product
    _by_product = True
    try:
        yield
    finally:
        _by_product = before


def take_rows(
    weight: KerasTensor,
    rows: KerasTensor,
) -> KerasTensor:
    """Looks up rows [batch, ...] of a weight [V, ...] by indices [batch]."""
    num_rows = weight.shape[0]
    if not _by_product or num_rows > MOST_ROWS:
        return ops.take(weight, rows, axis=0)
    code = ops.one_hot(rows, num_rows, dtype=weight.dtype)  # [batch, V]
    return ops.tensordot(code, weight, axes=1)


class ValueEmbedding(keras.layers.Layer):
    """Base of layers in which every value of a factor owns an image.

    A subclass has the largest `rank` R of a matrix, `matrices()` of all values
    [V, rows, columns], and `look_up` of indices [batch], zero unless `valid`.

    Args:
        num_values: The number V of values.
        size: Rows and columns of the matrices, or one number for both.
        inputs: `"index"`, or `"code"` for codes that mix matrices.

    Input shape:
        `(batch, 1)` or `(batch,)` for an index: NaN and indices outside of the
        range give the zero matrix. `(batch, V)` for a code.

    Output shape:
        `(batch, rows, columns)`.
    """

    def __init__(
        self,
        num_values: int,
        size: Size,
        inputs: str = "index",
        **kwargs,
    ) -> None:
        # Keras would cast the input to the compute dtype, and bfloat16 does
        # not tell index 257 from 256. Only the output has that dtype.
        super().__init__(
            autocast=False,
            **kwargs,
        )
        if isinstance(size, int):
            size = (size, size)
        rows, columns = size
        self.num_values = num_values
        self.size = (rows, columns)
        self.inputs = inputs

    def call(self, inputs: KerasTensor) -> KerasTensor:
        if self.inputs == "index":
            rows, valid = self._find_rows(ops.reshape(inputs, (-1,)))
            matrices = self.look_up(rows, valid)
        else:
            code = ops.cast(inputs, self.variable_dtype)  # [batch, V]
            matrices = ops.tensordot(code, self.matrices(), axes=1)
        return ops.cast(matrices, self.compute_dtype)

    def spectrum(self) -> KerasTensor:
        """Singular values `[V, R]` of the matrices, largest first."""
        values = ops.svd(self.matrices(), compute_uv=False)
        return values[:, : self.rank]

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        return (input_shape[0], *self.size)

    def get_config(self) -> dict:
        config = super().get_config()
        config["num_values"] = self.num_values
        config["size"] = list(self.size)
        config["inputs"] = self.inputs
        return config

    def _find_rows(self, index: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Finds rows [batch] of weights, and which of them are values."""
        if keras.backend.is_float_dtype(index.dtype):
            index = ops.round(index)
        else:
            index = ops.cast(index, "int64")
        # NaN compares false; checked before the cast, which may wrap around.
        valid = ops.logical_and(index >= 0, index <= self.num_values - 1)
        rows = ops.where(valid, index, ops.zeros_like(index))
        return ops.cast(rows, "int32"), valid


def list_embeddings(model: keras.Model) -> dict[str, ValueEmbedding]:
    """Returns the layers in which values own images, by their factor."""
    embeddings = {}
    for layer in model.layers:
        if isinstance(layer, ValueEmbedding):
            factor = layer.name.removeprefix("embedding_")
            embeddings[factor] = layer
    return embeddings


@keras.saving.register_keras_serializable(package="tfcomp")
class LowRankEmbedding(ValueEmbedding):
    """Looks up a low-rank matrix for every value of a factor.

    The value i owns (section 4.1 and appendix C of the paper, equation 8)

        M_i = sum_r lambda_ir u_ir v_ir^T

    with `rank` modes r. `u` and `v` are the weights `left` [V, R, rows] and
    `right` [V, R, columns] scaled to unit length (at least 1e-6), so that
    `lambda` [V, R] alone carries the size of a mode. Modes may be parallel, and
    `lambda` are not singular values: see `spectrum`.

    Args:
        num_values: The number V of values.
        size: Rows and columns of the matrices, or one number for both.
        rank: The number R of modes.
        inputs: `"index"` or `"code"`, see `ValueEmbedding`.
        coefficient_regularizer: Penalty of lambda, as `EntropyRegularizer`.
        left_regularizer: Penalty of `left`, as `VarianceRegularizer`.
        right_regularizer: Penalty of `right`, as `VarianceRegularizer`.
    """

    def __init__(
        self,
        num_values: int,
        size: Size,
        rank: int,
        inputs: str = "index",
        coefficient_regularizer: Any = None,
        left_regularizer: Any = None,
        right_regularizer: Any = None,
        **kwargs,
    ) -> None:
        super().__init__(num_values, size, inputs, **kwargs)
        self.rank = rank
        get = keras.regularizers.get
        self.coefficient_regularizer = get(coefficient_regularizer)
        self.left_regularizer = get(left_regularizer)
        self.right_regularizer = get(right_regularizer)

    def build(self, input_shape: tuple) -> None:
        rows, columns = self.size
        self.coefficients = self._add_modes(
            "coefficients", (), self.coefficient_regularizer
        )
        self.left = self._add_modes("left", (rows,), self.left_regularizer)
        self.right = self._add_modes(
            "right", (columns,), self.right_regularizer
        )

    def _add_modes(
        self,
        name: str,
        length: tuple,
        regularizer: Any,
    ) -> keras.Variable:
        """Adds a weight [V, R, *length] that starts at about unit length."""
        shape = (self.num_values, self.rank, *length)
        return self.add_weight(
            shape=shape,
            initializer=keras.initializers.RandomNormal(
                stddev=shape[-1] ** -0.5
            ),
            regularizer=regularizer,
            name=name,
        )

    def look_up(
        self,
        rows: KerasTensor,
        valid: KerasTensor,
    ) -> KerasTensor:
        coefficients = take_rows(self.coefficients, rows)
        return self._render(
            ops.where(valid[:, None], coefficients, 0.0),  # [batch, R]
            take_rows(self.left, rows),  # [batch, R, rows]
            take_rows(self.right, rows),  # [batch, R, columns]
        )

    def matrices(self) -> KerasTensor:
        return self._render(
            ops.convert_to_tensor(self.coefficients),
            ops.convert_to_tensor(self.left),
            ops.convert_to_tensor(self.right),
        )

    def get_config(self) -> dict:
        serialize = keras.regularizers.serialize
        return {
            **super().get_config(),
            "rank": self.rank,
            "coefficient_regularizer": serialize(self.coefficient_regularizer),
            "left_regularizer": serialize(self.left_regularizer),
            "right_regularizer": serialize(self.right_regularizer),
        }

    @classmethod
    def from_config(cls, config: dict) -> Self:
        # Models of earlier versions have them: None, None and False.
        config.pop("coefficient_initializer", None)
        config.pop("vector_initializer", None)
        if config.pop("orthogonal", False):
            raise ValueError("orthogonal modes ended with version 0.1")
        return super().from_config(config)

    def _render(
        self,
        coefficients: KerasTensor,
        left: KerasTensor,
        right: KerasTensor,
    ) -> KerasTensor:
        # The lengths go into one factor per mode: scaling each vector first
        # costs more passes over the large tensors.
        scale = coefficients[..., None]  # [n, R, 1]
        scale = scale * _inverse_length(left) * _inverse_length(right)
        # Not `ops.matmul` of a transpose, whose gradient moves a copy.
        return ops.einsum("nri,nrj->nij", left * scale, right)


def _inverse_length(vectors: KerasTensor) -> KerasTensor:
    squares = ops.sum(
        ops.square(vectors),
        axis=-1,
        keepdims=True,
    )
    return ops.rsqrt(ops.maximum(squares, LENGTH_FLOOR**2))  # [n, R, 1]
