"""Convolutions and penalties of forced rendering, and axes of hard rendering.

The penalties are equations 9 to 11 of the paper. As regularizers of weights
they count once per step, whatever the batch.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.models.registry import AXES
from tfcomp.models.value_embedding import (
    LENGTH_FLOOR,
    Size,
    ValueEmbedding,
    take_rows,
)

PRELU_START = 0.25
KERNEL_SIZE = 3
# Rows whose largest coefficient is below it have no distribution: entropy 0.
_COEFFICIENT_FLOOR = 1e-30
# Norms below it get no gradient, which is infinite at 0.
_NORM_FLOOR = 1e-12


def convolve(
    hidden: KerasTensor,
    index: int,
    filters: int,
    **kwargs: Any,
) -> KerasTensor:
    """Applies a PReLU and a convolution, which start as published.

    Args:
        hidden: Channels, [n, rows, columns, C].
        index: Number of the PReLU in its name.
        filters: Channels of the result.
        **kwargs: More arguments of the convolution, such as its name.
    """
    # Initializers draw their seeds when they are made: keep this order.
    bound = (filters * KERNEL_SIZE**2) ** -0.5
    layer = NarrowConvolution(
        filters,
        KERNEL_SIZE,
        padding="same",
        kernel_initializer=keras.initializers.RandomUniform(-bound, bound),
        bias_initializer=keras.initializers.RandomUniform(-bound, bound),
        **kwargs,
    )
    prelu = keras.layers.PReLU(
        alpha_initializer=keras.initializers.Constant(PRELU_START),
        shared_axes=[1, 2, 3],
        name=f"prelu_{index}",
    )
    return layer(prelu(hidden))


@keras.saving.register_keras_serializable(package="tfcomp")
class Stack(keras.layers.Layer):
    """Stacks images as the channels of one.

    Input shape:
        A list of C images, `(batch, rows, columns)`.

    Output shape:
        `(batch, rows, columns, C)`.
    """

    def call(self, inputs: list) -> KerasTensor:
        # Twice as fast as to interleave single numbers.
        return ops.transpose(ops.stack(inputs), (1, 2, 3, 0))


@keras.saving.register_keras_serializable(package="tfcomp")
class NarrowConvolution(keras.layers.Conv2DTranspose):
    """A linear transposed convolution to very few channels.

    TensorFlow would add the bias to one number for each channel at a time.
    Arguments and shapes are those of `keras.layers.Conv2DTranspose`, without
    an activation.
    """

    def call(self, inputs: KerasTensor) -> KerasTensor:
        drawn = ops.conv_transpose(
            inputs, self.kernel, self.strides, self.padding
        )  # [n, H, W, C]
        rows, columns, channels = drawn.shape[1:]
        lines = ops.reshape(drawn, (-1, rows, columns * channels))
        lines = lines + ops.tile(self.bias, (columns,))
        return ops.reshape(lines, (-1, rows, columns, channels))


class _Penalty(keras.regularizers.Regularizer):
    """Base of penalties: a weight times `measure`, over all values."""

    def __init__(
        self,
        weight: float,
        reduction: str = "sum",
    ) -> None:
        self.weight = float(weight)
        self.reduction = reduction

    def __call__(self, values: KerasTensor) -> KerasTensor:
        measured = self.measure(ops.convert_to_tensor(values))
        if self.reduction == "mean":
            return self.weight * ops.mean(measured)
        return self.weight * ops.sum(measured)

    def measure(self, values: KerasTensor) -> KerasTensor:
        raise NotImplementedError

    def get_config(self) -> dict:
        return {"weight": self.weight, "reduction": self.reduction}


@keras.saving.register_keras_serializable(package="tfcomp")
class EntropyRegularizer(_Penalty):
    """Entropy of the squared coefficients of every value, in nats.

        p_ir = lambda_ir^2 / sum_s lambda_is^2      (equation 9 of the paper)
        L = weight sum_i -sum_r p_ir log p_ir       (equation 10)

    for coefficients lambda `[V, R]`; a row of zeros has the entropy 0.

    Args:
        weight: `alpha` of equation 12, 0.1 in the paper's experiments.
        reduction: `"sum"` over the values i, or their `"mean"`.
    """

    def measure(self, values: KerasTensor) -> KerasTensor:
        """Computes the entropies [V] of coefficients [V, R]."""
        # Entropy ignores the scale of a row, so dividing by a constant changes
        # neither value nor gradient, and squares neither under- nor overflow.
        scale = ops.max(
            ops.abs(values),
            axis=-1,
            keepdims=True,
        )
        scale = ops.where(scale > _COEFFICIENT_FLOOR, scale, 1.0)  # [V, 1]
        squares = ops.square(values / ops.stop_gradient(scale))
        total = ops.sum(
            squares,
            axis=-1,
            keepdims=True,
        )
        p = squares / ops.where(total > 0.0, total, 1.0)  # [V, R]

        # p log p tends to 0 with p, but 0 * log 0 is NaN.
        logarithm = ops.log(ops.where(p > 0.0, p, 1.0))
        return -ops.sum(p * logarithm, axis=-1)


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
        reduction: `"sum"` over the vectors, or their `"mean"`.
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
        """Computes the variances [V, R] of vectors [V, R, N]."""
        # The sum is smallest at the mean, so its derivative by the mean is 0,
        # and leaving that out halves the backward pass.
        mean = ops.stop_gradient(
            ops.mean(
                values,
                axis=-1,
                keepdims=True,
            )
        )
        # Not the mean square minus the squared mean: what the penalty aims at,
        # entries that are almost equal, is where that difference loses digits.
        spread = ops.sum(ops.square(values - mean), axis=-1)  # [V, R]

        if self.basis == "unit":
            squares = ops.sum(ops.square(values), axis=-1)
            spread = spread / ops.maximum(squares, LENGTH_FLOOR**2)
        return spread / max(values.shape[-1] - 1, 1)  # 0 for a single entry

    def get_config(self) -> dict:
        return {**super().get_config(), "basis": self.basis}


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
            length = self.size[AXES.index(axis)]
            weight = self.add_weight(
                shape=(self.num_values, length),
                initializer=keras.initializers.RandomNormal(
                    stddev=length**-0.5
                ),
                regularizer=penalty,
                name=axis,
            )
            self._profiles.append(weight)

    def look_up(
        self,
        rows: KerasTensor,
        valid: KerasTensor,
    ) -> KerasTensor:
        profiles = []
        for weight in self._profiles:
            profile = take_rows(weight, rows)  # [batch, length]
            profiles.append(ops.where(valid[:, None], profile, 0.0))
        return self._render(profiles)

    def matrices(self) -> KerasTensor:
        return self._render([ops.convert_to_tensor(p) for p in self._profiles])

    def profiles(self) -> dict[str, np.ndarray]:
        """Profiles [V, length] by axis; a pruned axis keeps its last ones."""
        arrays = map(ops.convert_to_numpy, self._profiles)
        return dict(zip(self.axes, arrays, strict=True))

    def measure_ratio(self) -> float | None:
        """Returns the ratio of the norms of both axes, if there are two."""
        norms = self._measure_norms()
        if len(norms) < 2 or min(norms) == 0:
            return None
        return max(norms) / min(norms)

    def find_axis(self) -> str | None:
        """Returns the only axis in use; None if there are more."""
        indices = np.flatnonzero(ops.convert_to_numpy(self.kept))
        if len(indices) != 1:
            return None
        return self.axes[indices[0]]

    def prune(self, below: float) -> None:
        """Removes an axis that is weaker than `below` times the other."""
        if self.find_axis() is not None:
            return
        norms = self._measure_norms()
        strongest = max(norms)
        if min(norms) < below * strongest:
            self.kept.assign([float(norm == strongest) for norm in norms])

    def _measure_norms(self) -> list[float]:
        profiles = self.profiles().values()
        return [float(np.linalg.norm(profile)) for profile in profiles]

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
            scale = self.kept[index] * self.size[other] ** -0.5
            profile = profiles[index] * scale
            total = total + ops.expand_dims(profile, axis=1 + other)
        return total

    def _penalize(self, profiles: KerasTensor) -> KerasTensor:
        # A product: it ends for both axes when one is pruned.
        weight = self.group_weight * ops.prod(self.kept)
        squares = ops.sum(ops.square(profiles))
        return weight * ops.sqrt(ops.maximum(squares, _NORM_FLOOR))
