"""A matrix of bounded rank for every value of a factor."""

from typing import Self

import keras
from keras import KerasTensor, ops

from tfcomp.models.value_embedding import Size, ValueEmbedding, take_rows

# A shorter vector is divided by this, which bounds the gradient at a zero one.
_LENGTH_FLOOR = 1e-6


@keras.saving.register_keras_serializable(package="tfcomp")
class LowRankEmbedding(ValueEmbedding):
    """Looks up a low-rank matrix for every value of a factor.

    The value i owns (section 4.1 and appendix C of the paper, equation 8)

        M_i = sum_r lambda_ir u_ir v_ir^T

    with `rank` modes r. `u` and `v` are the weights `left` and `right`
    scaled to unit length, so that `lambda` alone carries the size of a mode.
    Vectors shorter than 1e-6 are divided by that: a zero vector stays zero.
    Modes may be parallel, and `lambda` are not singular values: see
    `spectrum`.

    Weights: `coefficients [V, R]`, `left [V, R, rows]` and
    `right [V, R, columns]`. Matrices start with a Frobenius norm of about 1.

    Args, besides those of `ValueEmbedding`:
        rank: Number of modes R, from 1 to the smaller side.
        coefficient_regularizer: As `EntropyRegularizer(0.1)`; those of `left`
            and `right` as `VarianceRegularizer(0.01)`.
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
        self.rank = rank
        if not 1 <= rank <= min(self.size):
            rule = f"from 1 to the smaller side of size={self.size}"
            raise ValueError(f"rank must be {rule}, got {rank}")
        regularize = keras.regularizers.get
        self.coefficient_regularizer = regularize(coefficient_regularizer)
        self.left_regularizer = regularize(left_regularizer)
        self.right_regularizer = regularize(right_regularizer)

    def build(self, input_shape: tuple) -> None:
        super().build(input_shape)
        self.coefficients = self.add_weight(
            (self.num_values, self.rank),
            keras.initializers.RandomNormal(stddev=self.rank**-0.5),
            regularizer=self.coefficient_regularizer,
            name="coefficients",
        )
        regularizers = (self.left_regularizer, self.right_regularizer)
        self.left, self.right = (
            self.add_weight(
                (self.num_values, self.rank, entries),
                keras.initializers.RandomNormal(stddev=entries**-0.5),
                regularizer=regularizer,
                name=name,
            )
            for name, entries, regularizer in zip(
                ("left", "right"), self.size, regularizers, strict=True
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
        regularize = keras.regularizers.serialize
        return {
            **super().get_config(),
            "rank": self.rank,
            "coefficient_regularizer": regularize(self.coefficient_regularizer),
            "left_regularizer": regularize(self.left_regularizer),
            "right_regularizer": regularize(self.right_regularizer),
        }

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
        """Matrices [n, rows, columns] of n values."""
        # The lengths go into one factor per mode: scaling each vector first
        # costs more passes over the large tensors.
        scale = coefficients[..., None]  # [n, R, 1]
        scale = scale * _inverse_length(left) * _inverse_length(right)
        # Not `ops.matmul` of a transpose, whose gradient moves a copy.
        return ops.einsum("nri,nrj->nij", left * scale, right)


def _inverse_length(vectors: KerasTensor) -> KerasTensor:
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return ops.rsqrt(ops.maximum(squares, _LENGTH_FLOOR**2))  # [n, R, 1]
