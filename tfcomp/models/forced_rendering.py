"""Layers in which every value of a factor owns an image, and their penalties.

The penalties are equations 9 to 11 of the paper. As regularizers of weights
they count once per step, whatever the batch.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.models.registry import AXES

Size = int | tuple[int, int]
# Rows of a weight up to which a product costs less than a scatter.
MOST_ROWS = 1024
# A shorter vector is divided by this, which bounds the gradient at a zero one.
LENGTH_FLOOR = 1e-6
# Rows whose largest coefficient is below it have no distribution: entropy 0.
_COEFFICIENT_FLOOR = 1e-30
# Norms below it get no gradient, which is infinite at 0.
_NORM_FLOOR = 1e-12
# Arguments of `LowRankEmbedding`.
_REGULARIZERS = (
    "coefficient_regularizer",
    "left_regularizer",
    "right_regularizer",
)
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


def take_rows(weight: KerasTensor, rows: KerasTensor) -> KerasTensor:
    """Looks up rows of a weight.

    Args:
        weight: The weight, [V, ...].
        rows: Indices, [batch].

    Returns:
        The rows, [batch, ...].
    """
    num_rows = weight.shape[0]
    is_large = num_rows > MOST_ROWS
    if is_large or not _by_product:
        return ops.take(weight, rows, axis=0)
    dtype = weight.dtype
    code = ops.one_hot(rows, num_rows, dtype=dtype)  # [batch, V]
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
        super().__init__(autocast=False, **kwargs)
        if isinstance(size, int):
            size = (size, size)
        rows, columns = size
        self.num_values = num_values
        self.size = (rows, columns)
        self.inputs = inputs

    def call(self, inputs: KerasTensor) -> KerasTensor:
        """Renders the matrices of values.

        Args:
            inputs: Values [batch, 1], or codes [batch, V], as `inputs` says.
        """
        if self.inputs == "index":
            index = ops.reshape(inputs, (-1,))
            rows, valid = self._find_rows(index)
            matrices = self.look_up(rows, valid)
        else:
            code = ops.cast(inputs, self.variable_dtype)  # [batch, V]
            every_matrix = self.matrices()
            matrices = ops.tensordot(code, every_matrix, axes=1)
        return ops.cast(matrices, self.compute_dtype)

    def spectrum(self) -> KerasTensor:
        """Singular values `[V, R]` of the matrices, largest first."""
        matrices = self.matrices()
        values = ops.svd(matrices, compute_uv=False)
        return values[:, : self.rank]

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """Returns the shape of the matrices.

        Args:
            input_shape: Of a batch of values or codes.
        """
        return (input_shape[0], *self.size)

    def get_config(self) -> dict:
        config = super().get_config()
        config["num_values"] = self.num_values
        config["size"] = list(self.size)
        config["inputs"] = self.inputs
        return config

    def _find_rows(self, index: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Finds rows [batch] of weights, and which of them are values."""
        index = ops.cast(index, "float32")
        index = ops.round(index)
        # NaN compares false; checked before the cast, which may wrap around.
        last = self.num_values - 1
        is_not_below = index >= 0
        is_not_above = index <= last
        valid = ops.logical_and(is_not_below, is_not_above)
        zeros = ops.zeros_like(index)
        rows = ops.where(valid, index, zeros)
        rows = ops.cast(rows, "int32")
        return rows, valid


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

    Input shape:
        See `ValueEmbedding`.

    Output shape:
        `(batch, rows, columns)`.

    Do not use it for a factor with more values than examples per value: every
    value learns alone.

    Example:
        >>> layer = LowRankEmbedding(5, (4, 3), rank=2)
        >>> tuple(layer(np.array([0.0, 3.0])).shape)
        (2, 4, 3)
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
        """Adds the weights of the modes.

        Args:
            input_shape: Of a batch; weights do not depend on it.
        """
        rows, columns = self.size
        self.coefficients = self._add_modes(
            "coefficients",
            length=(),
            regularizer=self.coefficient_regularizer,
        )
        self.left = self._add_modes(
            "left",
            length=(rows,),
            regularizer=self.left_regularizer,
        )
        self.right = self._add_modes(
            "right",
            length=(columns,),
            regularizer=self.right_regularizer,
        )

    def _add_modes(
        self,
        name: str,
        length: tuple,
        regularizer: Any,
    ) -> keras.Variable:
        """Adds a weight [V, R, *length] that starts at about unit length."""
        shape = (self.num_values, self.rank, *length)
        deviation = shape[-1] ** -0.5
        initializer = keras.initializers.RandomNormal(stddev=deviation)
        return self.add_weight(
            shape=shape,
            initializer=initializer,
            regularizer=regularizer,
            name=name,
        )

    def look_up(self, rows: KerasTensor, valid: KerasTensor) -> KerasTensor:
        """Looks up the matrices of values, [batch, rows, columns].

        Args:
            rows: Number of each value, [batch].
            valid: False where the factor is absent, and the matrix 0, [batch].
        """
        coefficients = take_rows(self.coefficients, rows)  # [batch, R]
        is_valid = valid[:, None]
        coefficients = ops.where(is_valid, coefficients, 0.0)
        left = take_rows(self.left, rows)  # [batch, R, rows]
        right = take_rows(self.right, rows)  # [batch, R, columns]
        return self._render(coefficients, left, right)

    def matrices(self) -> KerasTensor:
        coefficients = ops.convert_to_tensor(self.coefficients)
        left = ops.convert_to_tensor(self.left)
        right = ops.convert_to_tensor(self.right)
        return self._render(coefficients, left, right)

    def get_config(self) -> dict:
        config = super().get_config()
        config["rank"] = self.rank
        for name in _REGULARIZERS:
            regularizer = getattr(self, name)
            config[name] = keras.regularizers.serialize(regularizer)
        return config

    @classmethod
    def from_config(cls, config: dict) -> Self:
        """Restores the layer of a saved model.

        Args:
            config: The result of `get_config`, also of an earlier version.

        Raises:
            ValueError: If the model has orthogonal modes.
        """
        # Models saved before 0.3 have them: None, None and False.
        for name in ("coefficient_initializer", "vector_initializer"):
            config.pop(name, None)
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
        scale = scale * _inverse_length(left)
        scale = scale * _inverse_length(right)
        # Not `ops.matmul` of a transpose, whose gradient moves a copy.
        scaled = left * scale
        return ops.einsum("nri,nrj->nij", scaled, right)


def _inverse_length(vectors: KerasTensor) -> KerasTensor:
    """Computes 1 / |v| of vectors [n, R, k], as [n, R, 1]."""
    squares = ops.sum(
        ops.square(vectors),
        axis=-1,
        keepdims=True,
    )
    squares = ops.maximum(squares, LENGTH_FLOOR**2)
    return ops.rsqrt(squares)


@keras.saving.register_keras_serializable(package="tfcomp")
class AxisEmbedding(ValueEmbedding):
    """Looks up stripes: profiles that are broadcast along the other axes.

    They are what the penalties of section 4.1 of the paper lead to at best.
    The value i owns a profile `a_i` with a number for every row, and `b_i`
    with one for every column, as far as they are in `axes`:

        M_i[r, c] = a_i[r] / sqrt(columns) + b_i[c] / sqrt(rows)

    Of two axes, the group penalty `group_weight (|a| + |b|)`, of the norms of
    all profiles along an axis, lets one survive. `prune` then removes the
    other, and with it the penalty.

    Args:
        num_values: The number V of values.
        size: Rows and columns of the matrices, or one number for both.
        axes: Some of `"rows"` and `"columns"`.
        group_weight: The weight of the penalty; without it both axes stay.
        inputs: `"index"` or `"code"`, see `ValueEmbedding`.

    Input shape:
        See `ValueEmbedding`.

    Output shape:
        `(batch, rows, columns)`.

    Do not use it for factors that move nothing along rows or columns, as a
    shape or an angle: `LowRankEmbedding` has whole matrices.

    Example:
        >>> layer = AxisEmbedding(5, (4, 3), axes=("rows",))
        >>> tuple(layer(np.array([0.0, 3.0])).shape)
        (2, 4, 3)
    """

    def __init__(
        self,
        num_values: int,
        size: Size,
        axes: Sequence[str] = AXES,
        group_weight: float = 0.0,
        inputs: str = "index",
        **kwargs,
    ) -> None:
        super().__init__(num_values, size, inputs, **kwargs)
        self.axes = tuple(axes)
        self.rank = len(self.axes)
        self.group_weight = float(group_weight)

    def build(self, input_shape: tuple) -> None:
        """Adds the profiles of the axes.

        Args:
            input_shape: Of a batch; weights do not depend on it.
        """
        self.kept = self.add_weight(
            shape=(self.rank,),
            initializer="ones",
            trainable=False,
            name="kept",
        )
        penalty = None
        if self.rank > 1 and self.group_weight > 0:
            penalty = self._penalize

        self._profiles = []
        for axis in self.axes:
            axis_index = AXES.index(axis)
            length = self.size[axis_index]
            deviation = length**-0.5
            initializer = keras.initializers.RandomNormal(stddev=deviation)
            weight = self.add_weight(
                shape=(self.num_values, length),
                initializer=initializer,
                regularizer=penalty,
                name=axis,
            )
            self._profiles.append(weight)

    def look_up(self, rows: KerasTensor, valid: KerasTensor) -> KerasTensor:
        """Looks up the matrices of values, [batch, rows, columns].

        Args:
            rows: Number of each value, [batch].
            valid: False where the factor is absent, and the matrix 0, [batch].
        """
        is_valid = valid[:, None]
        profiles = []
        for weight in self._profiles:
            profile = take_rows(weight, rows)  # [batch, length]
            profile = ops.where(is_valid, profile, 0.0)
            profiles.append(profile)
        return self._render(profiles)

    def matrices(self) -> KerasTensor:
        profiles = []
        for weight in self._profiles:
            profile = ops.convert_to_tensor(weight)
            profiles.append(profile)
        return self._render(profiles)

    def profiles(self) -> dict[str, np.ndarray]:
        """Profiles [V, length] by axis; a pruned axis keeps its last ones."""
        profiles = {}
        weights = zip(self.axes, self._profiles, strict=True)
        for axis, weight in weights:
            profiles[axis] = ops.convert_to_numpy(weight)
        return profiles

    def measure_ratio(self) -> float | None:
        """Returns the ratio of the norms of both axes, if there are two."""
        norms = self._measure_norms()
        if len(norms) < 2:
            return None
        weakest = min(norms)
        strongest = max(norms)
        if weakest == 0:
            return None
        return strongest / weakest

    def find_axis(self) -> str | None:
        """Returns the only axis in use; None if there are more."""
        kept = ops.convert_to_numpy(self.kept)
        indices = np.flatnonzero(kept)
        if len(indices) != 1:
            return None
        index = indices[0]
        return self.axes[index]

    def prune(self, below: float) -> None:
        """Removes an axis that is weaker than `below` times the other.

        Args:
            below: A share of the norm of the stronger axis, in [0, 1].
        """
        if self.find_axis() is not None:
            return
        norms = self._measure_norms()
        strongest = max(norms)
        weakest = min(norms)
        if weakest < below * strongest:
            kept = []
            for norm in norms:
                is_strongest = norm == strongest
                kept.append(float(is_strongest))
            self.kept.assign(kept)

    def _measure_norms(self) -> list[float]:
        norms = []
        for profile in self.profiles().values():
            norm = float(np.linalg.norm(profile))
            norms.append(norm)
        return norms

    def get_config(self) -> dict:
        config = super().get_config()
        config["axes"] = list(self.axes)
        config["group_weight"] = self.group_weight
        return config

    def _render(self, profiles: Sequence[KerasTensor]) -> KerasTensor:
        """Sums the profiles [n, length] in use to [n, rows, columns]."""
        total = ops.zeros(self.size)
        for index, axis in enumerate(self.axes):
            other = 1 - AXES.index(axis)  # along which it is broadcast
            length = self.size[other]
            scale = self.kept[index] * length**-0.5
            profile = profiles[index] * scale
            axis_index = 1 + other
            stripes = ops.expand_dims(profile, axis=axis_index)
            total = total + stripes
        return total

    def _penalize(self, profiles: KerasTensor) -> KerasTensor:
        # A product: it ends for both axes when one is pruned.
        is_open = ops.prod(self.kept)
        weight = self.group_weight * is_open
        squares = ops.square(profiles)
        squares = ops.sum(squares)
        squares = ops.maximum(squares, _NORM_FLOOR)
        norm = ops.sqrt(squares)
        return weight * norm


class _Penalty(keras.regularizers.Regularizer):
    """Base of penalties: a weight times `measure`, over all values."""

    def __init__(self, weight: float, reduction: str = "sum") -> None:
        self.weight = float(weight)
        self.reduction = reduction

    def __call__(self, values: KerasTensor) -> KerasTensor:
        values = ops.convert_to_tensor(values)
        penalties = self.measure(values)
        if self.reduction == "mean":
            penalty = ops.mean(penalties)
        else:
            penalty = ops.sum(penalties)
        return self.weight * penalty

    def measure(self, values: KerasTensor) -> KerasTensor:
        raise NotImplementedError

    def get_config(self) -> dict:
        return {
            "weight": self.weight,
            "reduction": self.reduction,
        }


@keras.saving.register_keras_serializable(package="tfcomp")
class EntropyRegularizer(_Penalty):
    """Entropy of the squared coefficients of every value, in nats.

        p_ir = lambda_ir^2 / sum_s lambda_is^2      (equation 9 of the paper)
        L = weight sum_i -sum_r p_ir log p_ir       (equation 10)

    for coefficients lambda `[V, R]`; a row of zeros has the entropy 0.

    Args:
        weight: `alpha` of equation 12, 0.1 in the paper's experiments.
        reduction: `"sum"` over the values i, or their `"mean"`.

    Example:
        >>> penalty = EntropyRegularizer(1.0)
        >>> round(float(penalty(np.array([[2.0, 2.0], [3.0, 0.0]]))), 2)
        0.69
    """

    def measure(self, values: KerasTensor) -> KerasTensor:
        """Computes the entropies [V] of coefficients [V, R].

        Args:
            values: Coefficients lambda, [V, R].
        """
        # Entropy ignores the scale of a row, so dividing by a constant changes
        # neither value nor gradient, and squares neither under- nor overflow.
        scale = ops.max(
            ops.abs(values),
            axis=-1,
            keepdims=True,
        )
        scale = ops.where(scale > _COEFFICIENT_FLOOR, scale, 1.0)  # [V, 1]
        scale = ops.stop_gradient(scale)
        scaled = values / scale
        squares = ops.square(scaled)
        total = ops.sum(
            squares,
            axis=-1,
            keepdims=True,
        )
        total = ops.where(total > 0.0, total, 1.0)
        p = squares / total  # [V, R]

        # p log p tends to 0 with p, but 0 * log 0 is NaN.
        positive = ops.where(p > 0.0, p, 1.0)
        products = p * ops.log(positive)
        return -ops.sum(products, axis=-1)


@keras.saving.register_keras_serializable(package="tfcomp")
class VarianceRegularizer(_Penalty):
    """Sample variance over the entries of every vector.

        L = weight sum_i sum_r Var_n(u_irn)         (equation 11 of the paper)
        Var_n(u_irn) = sum_n (u_irn - mean_n u_irn)^2 / (N - 1)

    for vectors u `[V, R, N]`.

    Args:
        weight: `beta` of equation 12, 0.01 in the paper's experiments.
        basis: `"raw"` (the published code) takes vectors as they are, `"unit"`
            (the paper's text) scales them to unit length.
        reduction: `"sum"` over the vectors, or their `"mean"`. The sum grows
            with the grid, so that its weight does not transfer to another.

    Example:
        >>> penalty = VarianceRegularizer(0.5)
        >>> round(float(penalty(np.array([[[0.0, 2.0]]]))), 2)
        1.0
    """

    def __init__(
        self,
        weight: float,
        basis: str = "raw",
        reduction: str = "sum",
    ) -> None:
        super().__init__(weight, reduction)
        self.basis = basis

    def measure(self, values: KerasTensor) -> KerasTensor:
        """Computes the variances [V, R] of vectors [V, R, N].

        Args:
            values: Vectors u, [V, R, N].
        """
        mean = ops.mean(
            values,
            axis=-1,
            keepdims=True,
        )
        # The sum is smallest at the mean, so its derivative by the mean is 0,
        # and leaving that out halves the backward pass.
        mean = ops.stop_gradient(mean)
        # Not the mean square minus the squared mean: what the penalty aims at,
        # entries that are almost equal, is where that difference loses digits.
        deviations = values - mean
        squares = ops.square(deviations)
        spread = ops.sum(squares, axis=-1)  # [V, R]

        if self.basis == "unit":
            squares = ops.square(values)
            squared_lengths = ops.sum(squares, axis=-1)
            floor = LENGTH_FLOOR**2
            squared_lengths = ops.maximum(squared_lengths, floor)
            spread = spread / squared_lengths

        num_entries = values.shape[-1]
        degrees = max(num_entries - 1, 1)  # a single entry has none
        return spread / degrees

    def get_config(self) -> dict:
        config = super().get_config()
        config["basis"] = self.basis
        return config
