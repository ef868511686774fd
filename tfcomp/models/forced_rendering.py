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
# Squared norms below it get no gradient: the square root has an infinite one
# at 0.
_SQUARED_NORM_FLOOR = 1e-12
# Arguments of `LowRankEmbedding`.
_REGULARIZERS = (
    "coefficient_regularizer",
    "left_regularizer",
    "right_regularizer",
)
_by_product = False  # see `use_products`


@contextlib.contextmanager
def use_products() -> Iterator[None]:
    """Makes functions that are traced in the block look rows up by products.

    The gradient of `take` is a scatter, which deterministic kernels of a GPU
    add row by row; the gradient of a product with one-hot codes is a product.

    The switch is global: replicas are traced in threads of their own, which
    must all see it.
    """
    global _by_product
    outer = _by_product
    _by_product = True
    try:
        yield
    finally:
        _by_product = outer


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

    The image is a matrix [rows, columns]. A subclass has

        rank                   the largest rank R of a matrix
        matrices()             matrices of all values, [V, rows, columns]
        look_up(rows, valid)   matrices of indices `rows` [batch], zero where
                               `valid` [batch] is false, [batch, rows, columns]

    Args:
        num_values: The number V of values.
        size: Rows and columns of the matrices, or one number for both.
        inputs: `"index"` looks a matrix up; `"code"` sums the matrices of all
            values with the code as weights.

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
        """Renders the matrix of each index or code.

        Args:
            inputs: Indices [batch, 1] or [batch], or codes [batch, V].
        """
        if self.inputs == "index":
            index = ops.reshape(inputs, (-1,))
            rows, valid = self._find_rows(index)
            matrices = self.look_up(rows, valid)
        else:
            code = ops.cast(inputs, self.variable_dtype)  # [batch, V]
            every_matrix = self.matrices()  # [V, rows, columns]
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
        """Turns indices of values [batch] into rows of weights.

        Returns:
            The rows, [batch], 0 for an index without a value; and which indices
            have a value, [batch].
        """
        index = ops.cast(index, "float32")
        index = ops.round(index)
        # NaN compares false. The check comes before the cast to an integer,
        # which may wrap around.
        last = self.num_values - 1
        is_not_below = index >= 0
        is_not_above = index <= last
        valid = ops.logical_and(is_not_below, is_not_above)
        zeros = ops.zeros_like(index)
        rows = ops.where(valid, index, zeros)
        rows = ops.cast(rows, "int32")
        return rows, valid


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

    Input shape:
        See `ValueEmbedding`.

    Output shape:
        `(batch, rows, columns)`.

    Every value learns alone, from its own examples: do not use it for a factor
    that has more values than examples of each value.

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
        """Adds a weight [V, R, *length] that starts at about unit length.

        Args:
            name: The name of the weight.
            length: `(k,)` for vectors of k numbers, `()` for coefficients.
            regularizer: Its penalty, or None.
        """
        shape = (self.num_values, self.rank, *length)
        # Unit length of the k entries of a vector, or of R coefficients.
        deviation = shape[-1] ** -0.5
        initializer = keras.initializers.RandomNormal(stddev=deviation)
        return self.add_weight(
            shape=shape,
            initializer=initializer,
            regularizer=regularizer,
            name=name,
        )

    def look_up(self, rows: KerasTensor, valid: KerasTensor) -> KerasTensor:
        """Looks up matrices of values, [batch, rows, columns].

        Args:
            rows: Rows of the weights, [batch].
            valid: Which rows are values, [batch]; others get a zero matrix.
        """
        coefficients = take_rows(self.coefficients, rows)  # [batch, R]
        is_valid = valid[:, None]
        coefficients = ops.where(is_valid, coefficients, 0.0)
        left = take_rows(self.left, rows)  # [batch, R, rows]
        right = take_rows(self.right, rows)  # [batch, R, columns]
        return self._render(coefficients, left, right)

    def matrices(self) -> KerasTensor:
        """Renders the matrices of all values, [V, rows, columns]."""
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
        """Sums the modes of n values to matrices [n, rows, columns].

        Args:
            coefficients: The sizes lambda of the modes, [n, R].
            left: Vectors of any length, [n, R, rows].
            right: Vectors of any length, [n, R, columns].
        """
        # The lengths go into one factor per mode: scaling each vector first
        # costs more passes over the large tensors.
        scale = coefficients[..., None]  # [n, R, 1]
        scale = scale * _inverse_length(left)
        scale = scale * _inverse_length(right)
        # Not `ops.matmul` of a transpose, whose gradient moves a copy.
        scaled = left * scale
        return ops.einsum("nri,nrj->nij", scaled, right)


def _inverse_length(vectors: KerasTensor) -> KerasTensor:
    """Computes 1 / max(|v|, LENGTH_FLOOR), [n, R, 1], of v [n, R, k]."""
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

    The penalties of section 4.1 of the paper drive a `LowRankEmbedding` towards
    such stripes. The value i owns a profile `a_i` with a number for every row,
    and `b_i` with one for every column, as far as they are in `axes`:

        M_i[r, c] = a_i[r] / sqrt(columns) + b_i[c] / sqrt(rows)

    With two axes there is a group penalty, `group_weight (|a| + |b|)`, where
    |a| is the norm of the profiles along the rows of all values together. It
    drives the weaker axis to zero. `prune` then removes that axis, and ends the
    penalty of the other.

    Args:
        num_values: The number V of values.
        size: Rows and columns of the matrices, or one number for both.
        axes: `"rows"`, `"columns"` or both.
        group_weight: The weight of the penalty; at 0 both axes stay.
        inputs: `"index"` or `"code"`, see `ValueEmbedding`.

    Input shape:
        See `ValueEmbedding`.

    Output shape:
        `(batch, rows, columns)`.

    Do not use it for factors that move nothing along rows or columns, such as a
    shape or an angle: `LowRankEmbedding` learns any matrix.

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
        # 1 for an axis in use, 0 for one that was pruned.
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
        """Looks up matrices of values, [batch, rows, columns].

        Args:
            rows: Rows of the weights, [batch].
            valid: Which rows are values, [batch]; others get a zero matrix.
        """
        is_valid = valid[:, None]
        profiles = []
        for weight in self._profiles:
            profile = take_rows(weight, rows)  # [batch, length]
            profile = ops.where(is_valid, profile, 0.0)
            profiles.append(profile)
        return self._render(profiles)

    def matrices(self) -> KerasTensor:
        """Renders the matrices of all values, [V, rows, columns]."""
        profiles = []
        for weight in self._profiles:
            profile = ops.convert_to_tensor(weight)
            profiles.append(profile)
        return self._render(profiles)

    def profiles(self) -> dict[str, np.ndarray]:
        """Returns the profiles [V, length] by axis.

        A pruned axis still has the profiles that it had when it was pruned.
        """
        profiles = {}
        weights = zip(self.axes, self._profiles, strict=True)
        for axis, weight in weights:
            profiles[axis] = ops.convert_to_numpy(weight)
        return profiles

    def measure_ratio(self) -> float | None:
        """Computes the norm of the stronger axis divided by the weaker one's.

        Returns:
            The ratio, at least 1; None for one axis or a norm of 0.
        """
        norms = self._measure_norms()
        if len(norms) < 2:
            return None
        weakest = min(norms)
        strongest = max(norms)
        if weakest == 0:
            return None
        return strongest / weakest

    def find_axis(self) -> str | None:
        """Returns the only axis in use; None if both are."""
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
        """Computes the norm of all profiles of each axis, in their order."""
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
            # A profile along the rows is the same in every column.
            broadcast_axis = 1 - AXES.index(axis)
            num_copies = self.size[broadcast_axis]
            scale = self.kept[index] * num_copies**-0.5
            profile = profiles[index] * scale
            # Axis 0 of the tensors is n.
            stripes = ops.expand_dims(profile, axis=1 + broadcast_axis)
            total = total + stripes
        return total

    def _penalize(self, profiles: KerasTensor) -> KerasTensor:
        """Computes the group penalty of one axis.

        Args:
            profiles: Profiles of all values, [V, length].
        """
        # 0 once an axis is pruned: the penalty then ends for both.
        both_kept = ops.prod(self.kept)
        weight = self.group_weight * both_kept
        squares = ops.square(profiles)
        squared_norm = ops.sum(squares)
        squared_norm = ops.maximum(squared_norm, _SQUARED_NORM_FLOOR)
        norm = ops.sqrt(squared_norm)
        return weight * norm


class _Penalty(keras.regularizers.Regularizer):
    """Base of penalties: a weight times the sum or mean of `measure`.

    A subclass has `measure`, the penalties of the rows of a weight.
    """

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
        # The sum of squares is smallest at the mean, so its derivative by the
        # mean is 0, and leaving that out halves the backward pass.
        mean = ops.stop_gradient(mean)
        # Not the mean square minus the squared mean: that difference loses
        # digits where the entries are almost equal, as the penalty makes them.
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
