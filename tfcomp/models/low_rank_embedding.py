"""A matrix of bounded rank for every value of a factor."""

from typing import Self

import keras
from keras import KerasTensor, ops

from tfcomp.models.value_embedding import Size, ValueEmbedding, take_rows

# A shorter vector is divided by this, which bounds the gradient at a zero one.
_LENGTH_FLOOR = 1e-6
# Added to the r-th entry of the r-th unit vector before orthogonalization:
# dependent vectors would make the derivative of the QR decomposition infinite.
_INDEPENDENCE = 1e-6


@keras.saving.register_keras_serializable(package="tfcomp")
class LowRankEmbedding(ValueEmbedding):
    """Looks up a low-rank matrix for every value of a factor.

    The value i owns (section 4.1 and appendix C of the paper, equation 8)

        M_i = sum_r lambda_ir u_ir v_ir^T

    with `rank` modes r. `u` and `v` are the weights `left` and `right`
    scaled to unit length, so that `lambda` alone carries the size of a mode.
    Vectors shorter than 1e-6 are divided by that: a zero vector stays zero.
    Unless `orthogonal` is set, the modes may be parallel, and `lambda` are
    not singular values: see `spectrum`.

    Weights: `coefficients [V, R]`, `left [V, R, rows]` and
    `right [V, R, columns]`. Matrices start with a Frobenius norm of about 1.

    Args, besides those of `ValueEmbedding`:
        rank: Number of modes R, from 1 to the smaller side.
        orthogonal: Replaces the unit vectors of each value by an orthonormal
            basis (Gram-Schmidt, in the order of the modes). The coefficients
            are then the singular values up to sign and order. Regularizers
            see the weights, not this basis.
        coefficient_regularizer: As `EntropyRegularizer(0.1)`; those of `left`
            and `right` as `VarianceRegularizer(0.01)`.
    """

    def __init__(
        self,
        num_values: int,
        size: Size,
        rank: int,
        inputs: str = "index",
        orthogonal: bool = False,
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
        self.orthogonal = bool(orthogonal)
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
            "orthogonal": self.orthogonal,
            "coefficient_regularizer": regularize(self.coefficient_regularizer),
            "left_regularizer": regularize(self.left_regularizer),
            "right_regularizer": regularize(self.right_regularizer),
        }

    @classmethod
    def from_config(cls, config: dict) -> Self:
        # Models of earlier versions have initializers, all None.
        config.pop("coefficient_initializer", None)
        config.pop("vector_initializer", None)
        return super().from_config(config)

    def _render(
        self, coefficients: KerasTensor, left: KerasTensor, right: KerasTensor
    ) -> KerasTensor:
        """Matrices [n, rows, columns] of n values."""
        scale = coefficients[..., None]  # [n, R, 1]
        if self.orthogonal:
            left, right = _orthonormalize(left), _orthonormalize(right)
        else:
            # The lengths go into one factor per mode: scaling each vector
            # first costs more passes over the large tensors.
            scale = scale * _inverse_length(left) * _inverse_length(right)
        # Not `ops.matmul` of a transpose, whose gradient moves a copy.
        return ops.einsum("nri,nrj->nij", left * scale, right)


def _inverse_length(vectors: KerasTensor) -> KerasTensor:
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return ops.rsqrt(ops.maximum(squares, _LENGTH_FLOOR**2))  # [n, R, 1]


def _orthonormalize(vectors: KerasTensor) -> KerasTensor:
    shift = _INDEPENDENCE * ops.eye(*vectors.shape[1:], dtype=vectors.dtype)
    unit = vectors * _inverse_length(vectors)
    columns = ops.transpose(unit + shift, (0, 2, 1))  # [n, N, R]
    basis, triangle = ops.qr(columns)  # [n, N, R], [n, R, R]
    # The signs of a QR decomposition are arbitrary; a positive diagonal
    # makes it unique, and so a continuous function of the vectors.
    diagonal = ops.diagonal(triangle, axis1=-2, axis2=-1)  # [n, R]
    signs = 2.0 * ops.cast(diagonal >= 0, diagonal.dtype) - 1.0
    return ops.transpose(basis * signs[:, None, :], (0, 2, 1))
