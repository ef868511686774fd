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
from tfcomp.models.value_embedding import Size, ValueEmbedding, take_rows

PRELU_START = 0.25
KERNEL_SIZE = 3
# Rows whose largest coefficient is below it have no distribution: entropy 0.
_COEFFICIENT_FLOOR = 1e-30
# Length up to which unit vectors are not of unit length
# (see `LowRankEmbedding`).
_LENGTH_FLOOR = 1e-6
# Norms below it get no gradient, which is infinite at 0.
_NORM_FLOOR = 1e-12


def convolve(
    hidden: KerasTensor, index: int, filters: int, **kwargs: Any
) -> KerasTensor:
    """Applies a PReLU and a convolution, which start as published."""
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
    """Stacks images [n, H, W] as the channels of one, [n, H, W, C]."""

    def call(self, inputs: list) -> KerasTensor:
        # Twice as fast as to interleave single numbers.
        return ops.transpose(ops.stack(inputs), (1, 2, 3, 0))


@keras.saving.register_keras_serializable(package="tfcomp")
class NarrowConvolution(keras.layers.Conv2DTranspose):
    """A linear transposed convolution to very few channels.

    TensorFlow would add the bias to one number for each channel at a time.
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
    def __init__(self, weight: float, reduction: str = "sum") -> None:
        self.weight = float(weight)
        self.reduction = reduction

    def __call__(self, values: KerasTensor) -> KerasTensor:
        measured = self.measure(ops.convert_to_tensor(values))
        return self.weight * getattr(ops, self.reduction)(measured)

    def get_config(self) -> dict:
        return {"weight": self.weight, "reduction": self.reduction}


@keras.saving.register_keras_serializable(package="tfcomp")
class EntropyRegularizer(_Penalty):
    """Entropy of the squared coefficients of every value, in nats.

    For coefficients `[V, R]`, `p_ir = lambda_ir^2 / sum_s lambda_is^2` and the
    penalty of the value i is `-sum_r p_ir log p_ir`, 0 for a row of zeros. The
    weight is `alpha` of equation 12, 0.1 in the paper's experiments.
    """

    def measure(self, values: KerasTensor) -> KerasTensor:
        # Entropy ignores the scale of a row, so dividing by a constant changes
        # neither value nor gradient, and squares neither under- nor overflow.
        scale = ops.max(ops.abs(values), axis=-1, keepdims=True)
        scale = ops.where(scale > _COEFFICIENT_FLOOR, scale, 1.0)  # [V, 1]
        squares = ops.square(values / ops.stop_gradient(scale))
        total = ops.sum(squares, axis=-1, keepdims=True)
        p = squares / ops.where(total > 0.0, total, 1.0)  # [V, R]
        # p log p tends to 0 with p, but 0 * log 0 is NaN.
        return -ops.sum(p * ops.log(ops.where(p > 0.0, p, 1.0)), axis=-1)


@keras.saving.register_keras_serializable(package="tfcomp")
class VarianceRegularizer(_Penalty):
    """Sample variance over the entries of every vector.

    `Var_n(u_irn) = sum_n (u_irn - mean_n u_irn)^2 / (N - 1)`. The weight is
    `beta` of equation 12, 0.01 in the paper's experiments. The basis `"raw"`
    (the published code) takes the vectors `[V, R, N]` as they are, `"unit"`
    (the paper's text) scales them to unit length.
    """

    def __init__(
        self, weight: float, basis: str = "raw", reduction: str = "sum"
    ) -> None:
        super().__init__(weight, reduction)
        self.basis = basis

    def measure(self, values: KerasTensor) -> KerasTensor:
        # The sum is smallest at the mean, so its derivative by the mean is 0,
        # and leaving that out halves the backward pass.
        mean = ops.stop_gradient(ops.mean(values, axis=-1, keepdims=True))
        # Not the mean square minus the squared mean: what the penalty aims at,
        # entries that are almost equal, is where that difference loses digits.
        spread = ops.sum(ops.square(values - mean), axis=-1)  # [V, R]
        if self.basis == "unit":
            squares = ops.sum(ops.square(values), axis=-1)
            spread = spread / ops.maximum(squares, _LENGTH_FLOOR**2)
        return spread / max(values.shape[-1] - 1, 1)  # of one entry 0

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
            (len(self.axes),), "ones", trainable=False, name="kept"
        )
        is_choice = len(self.axes) > 1 and self.group_weight > 0
        self._profiles = []
        for axis in self.axes:
            length = self.size[AXES.index(axis)]
            weight = self.add_weight(
                (self.num_values, length),
                keras.initializers.RandomNormal(stddev=length**-0.5),
                regularizer=self._penalize if is_choice else None,
                name=axis,
            )
            self._profiles.append(weight)

    def look_up(self, rows: KerasTensor, valid: KerasTensor) -> KerasTensor:
        chosen = (take_rows(p, rows) for p in self._profiles)
        return self._draw([ops.where(valid[:, None], p, 0.0) for p in chosen])

    def matrices(self) -> KerasTensor:
        return self._draw([ops.convert_to_tensor(p) for p in self._profiles])

    def profiles(self) -> dict[str, np.ndarray]:
        """Profiles [V, length] by axis; a pruned axis keeps its last ones."""
        arrays = map(ops.convert_to_numpy, self._profiles)
        return dict(zip(self.axes, arrays, strict=True))

    def measure_ratio(self) -> float | None:
        """Returns the ratio of the norms of both axes, if there are two."""
        norms = self._measure_norms()
        is_ratio = len(norms) > 1 and min(norms) > 0
        return float(max(norms) / min(norms)) if is_ratio else None

    def find_axis(self) -> str | None:
        """Returns the only axis in use; None if there are more."""
        left = np.flatnonzero(ops.convert_to_numpy(self.kept))
        return self.axes[left[0]] if len(left) == 1 else None

    def prune(self, below: float) -> None:
        """Removes an axis that is weaker than `below` times the other."""
        norms = self._measure_norms()
        if self.find_axis() is None and min(norms) < below * max(norms):
            self.kept.assign([float(n == max(norms)) for n in norms])

    def _measure_norms(self) -> list[float]:
        return [float(np.linalg.norm(p)) for p in self.profiles().values()]

    def get_config(self) -> dict:
        own = {"axes": list(self.axes), "group_weight": self.group_weight}
        return super().get_config() | own

    def _draw(self, profiles: Sequence[KerasTensor]) -> KerasTensor:
        """Sums the profiles [n, length] in use to [n, rows, columns]."""
        total = ops.zeros(self.size)
        for index, axis in enumerate(self.axes):
            other = 1 - AXES.index(axis)  # along which it is broadcast
            scale = self.kept[index] * self.size[other] ** -0.5
            total = total + ops.expand_dims(profiles[index] * scale, 1 + other)
        return total

    def _penalize(self, profiles: KerasTensor) -> KerasTensor:
        # A product: it ends for both axes when one is pruned.
        weight = self.group_weight * ops.prod(self.kept)
        squares = ops.sum(ops.square(profiles))
        return weight * ops.sqrt(ops.maximum(squares, _NORM_FLOOR))
