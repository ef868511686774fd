"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them.
"""

import math
from typing import Self

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.factors import Factor, FactorSpace

Space = FactorSpace | dict


def nearest_index(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Finds the nearest value of a factor's grid.

    Args:
        values: Raw values, of any shape, in the factor's unit.
        factor: The factor that they belong to.

    Returns:
        Indices 0 .. size - 1 as floats, in the shape of `values`.
    """
    if factor.levels:
        return _nearest_level(values, factor)

    offset = values - factor.low
    steps = offset / factor.step
    index = ops.round(steps)
    if factor.periodic:
        cycle = float(factor.size)
        index = ops.mod(index, cycle)
    last = factor.size - 1.0
    return ops.clip(index, 0.0, last)


def _nearest_level(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Finds the nearest of a factor's levels, which have no common step.

    Args:
        values: Raw values, of any shape, in the factor's unit.
        factor: A factor with levels.

    Returns:
        Indices as floats, in the shape of `values`; the lower index in the
        middle between two levels.
    """
    if factor.periodic:
        values = _wrap(values, factor)
    points = values[..., None]
    levels = factor.values()
    difference = ops.subtract(points, levels)  # [..., size]
    distance = ops.abs(difference)
    smallest = ops.min(
        distance,
        axis=-1,
        keepdims=True,
    )
    is_nearest = distance == smallest

    # `ops.argmin` has a Bitcast, an operation that formats of exported models
    # lack: take the least of the indices of the nearest levels.
    last = factor.size - 1
    every_index = np.arange(factor.size)
    candidates = ops.where(is_nearest, every_index, last)
    index = ops.min(candidates, axis=-1)
    return ops.cast(index, values.dtype)


def _wrap(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Moves values that lie outside of the levels by whole periods.

    They end in the period that starts in the middle between the last level and
    the first one. There the nearest level is also the nearest on the circle.
    """
    levels = factor.values()
    start, period = factor.find_wrap()
    offset = values - start
    offset = ops.mod(offset, period)
    moved = start + offset
    is_below = values < levels[0]
    is_above = values > levels[-1]
    is_outside = ops.logical_or(is_below, is_above)
    return ops.where(is_outside, moved, values)


def encode_one_hot(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Encodes values as 1 for the nearest grid value, else 0.

    Args:
        values: Raw values of a factor, [n, 1].
        factor: The factor.

    Returns:
        The code, [n, size].
    """
    column = values[:, 0]
    index = nearest_index(column, factor)
    index = ops.cast(index, "int32")
    return ops.one_hot(index, factor.size)


class FactorEncoding(keras.layers.Layer):
    """Base of encodings: one code for each factor, side by side.

    A subclass has `encode_factor`, which returns the code [n, code_size] of
    present values [n, 1] of a factor. If the subclass is differentiable, this
    base gives a categorical factor, which has no order, a one-hot code instead.

    The layer always computes in float32: positions do not fit into the 8 bits
    of mantissa that bfloat16 has.

    Args:
        space: The `FactorSpace` of the factors, or its `to_dict()`.

    Input shape:
        `(batch, F)`: raw values of F factors in their units; NaN where a
        factor is absent.

    Output shape:
        `(batch, sum of code sizes)`: the codes in the order of the factors.
    """

    # Names of the arguments that a subclass adds, and of its attributes.
    options: tuple[str, ...] = ()
    # False if the derivative is 0 or undefined.
    differentiable = True
    # What every unit of an absent factor is.
    absent_value = 0.0

    def __init__(self, space: Space, **kwargs) -> None:
        kwargs["dtype"] = "float32"
        super().__init__(**kwargs)
        if isinstance(space, dict):
            space = FactorSpace.from_dict(space)
        self.space = space

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        """Makes the layer `code` of a run by its settings.

        Args:
            config: The run.
            space: The factors of its data.
        """
        return cls(space, name="code")

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Encodes present values of a factor.

        Args:
            values: Raw values, [n, 1].
            factor: The factor.

        Returns:
            The code, [n, code_size].
        """
        raise NotImplementedError

    def code_size(self, factor: Factor) -> int:
        """The number of units that `encode_factor` returns for a factor.

        Args:
            factor: The factor.
        """
        return factor.size

    @property
    def code_sizes(self) -> list[int]:
        """The number of units of each factor."""
        sizes = []
        for factor in self.space:
            if self._is_one_hot(factor):
                sizes.append(factor.size)
            else:
                sizes.append(self.code_size(factor))
        return sizes

    def split(self, code: KerasTensor) -> list[KerasTensor]:
        """Splits a code into the codes of its factors.

        Args:
            code: The output of the layer, [n, sum of code sizes].

        Returns:
            A code [n, code size] for each factor, in their order.
        """
        codes = []
        start = 0
        for size in self.code_sizes:
            end = start + size
            codes.append(code[:, start:end])
            start = end
        return codes

    def call(self, factors: KerasTensor) -> KerasTensor:
        """Encodes every factor and joins the codes.

        Args:
            factors: Raw values, [n, F]; NaN where a factor is absent.

        Returns:
            The code, [n, sum of code sizes].
        """
        codes = []
        for column, factor in enumerate(self.space):
            end = column + 1
            values = factors[:, column:end]  # [n, 1]
            absent = ops.isnan(values)
            # `where` would stop NaN in the output alone: the gradient of a code
            # of NaN is NaN, even where another value replaces the code.
            zeros = ops.zeros_like(values)
            present = ops.where(absent, zeros, values)

            if self._is_one_hot(factor):
                code = encode_one_hot(present, factor)
                absent_value = 0.0
            else:
                code = self.encode_factor(present, factor)
                absent_value = self.absent_value
            code = ops.where(absent, absent_value, code)
            codes.append(code)
        return ops.concatenate(codes, axis=-1)

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """Returns the shape of the code.

        Args:
            input_shape: Of the factor values, (n, F).
        """
        num_points = input_shape[0]
        num_units = sum(self.code_sizes)
        return (num_points, num_units)

    def _is_one_hot(self, factor: Factor) -> bool:
        """Checks whether the base encodes a factor, by a one-hot code."""
        return factor.categorical and self.differentiable

    def get_config(self) -> dict:
        config = super().get_config()
        config.pop("dtype", None)  # always float32
        config["space"] = self.space.to_dict()
        for name in self.options:
            config[name] = getattr(self, name)
        return config


@keras.saving.register_keras_serializable(package="tfcomp")
class BumpEncoding(FactorEncoding):
    """Population code with bump-shaped tuning curves (paper, section 3.1).

        z_i = exp(-(f - v_i)^2 / 2 s^2)

    with a unit for each grid value v_i. Distances of a periodic factor are
    taken around its circle.

    Neighbouring values share units, so that a decoder can interpolate. Do not
    use it where values must not overlap (`OneHotEncoding`), or for far more
    values than a decoder can have inputs (`PositionalEncoding`).

    Args:
        space: See `FactorEncoding`.
        sigma: The tuning width s, in grid steps.

    Example:
        >>> space = FactorSpace((Factor("x", 3, 0.0, 2.0),))
        >>> code = BumpEncoding(space)(np.array([[1.0]]))
        >>> np.asarray(code).round(2)
        array([[0.61, 1.  , 0.61]], dtype=float32)
    """

    options = ("sigma",)

    def __init__(self, space: Space, sigma: float = 1.0, **kwargs) -> None:
        super().__init__(space, **kwargs)
        self.sigma = sigma

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        """Takes the tuning width of the run, else the width of its bumps.

        Args:
            config: The run.
            space: The factors of its data.
        """
        sigma = config.model.code_width or config.data.sigma
        return cls(
            space,
            sigma=sigma,
            name="code",
        )

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Encodes [n, 1] as [n, size], by the distance to each value.

        Args:
            values: Raw values, [n, 1].
            factor: The factor.
        """
        levels = factor.values()
        distance = ops.subtract(values, levels)  # [n, size]
        if factor.periodic:
            # The shorter way around the circle, at most half a period.
            period = factor.high - factor.low
            periods = distance / period
            turns = ops.round(periods)
            distance -= period * turns
        width = self.sigma * factor.step  # in the factor's unit
        scaled = distance / width
        squares = ops.square(scaled)
        return ops.exp(-0.5 * squares)


@keras.saving.register_keras_serializable(package="tfcomp")
class OneHotEncoding(FactorEncoding):
    """The unit of the nearest grid value is 1, all others are 0.

    As in section 4.1 of the paper. It has no derivatives, so geometry comes
    from differences, and values between grid values are rounded: do not
    use it to draw such values.

    Args:
        space: See `FactorEncoding`.

    Example:
        >>> space = FactorSpace((Factor("x", 3, 0.0, 2.0),))
        >>> np.asarray(OneHotEncoding(space)(np.array([[0.9]])))
        array([[0., 1., 0.]], dtype=float32)
    """

    differentiable = False

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Encodes [n, 1] as [n, size], with a 1 at the nearest value.

        Args:
            values: Raw values, [n, 1].
            factor: The factor.
        """
        return encode_one_hot(values, factor)


@keras.saving.register_keras_serializable(package="tfcomp")
class PositionalEncoding(FactorEncoding):
    """Sinusoids of a factor (Vaswani et al. 2017).

        z = [sin w_0 v, ..., sin w_(K-1) v, cos w_0 v, ..., cos w_(K-1) v]
        w_k = max_wavelength^(-k / K)

    with v the factor in grid steps from its low end, and 2 K units, about one
    for each value. Wavelengths reach from 2 pi grid steps to less than 2 pi
    `max_wavelength` grid steps.

    Do not use it for a periodic factor, which has no wrap here
    (`CircleEncoding` or `BumpEncoding`).

    Args:
        space: See `FactorEncoding`.
        max_wavelength: A bound of the wavelengths, in units of 2 pi grid steps.

    Example:
        >>> space = FactorSpace((Factor("x", 4, 0.0, 3.0),))
        >>> code = PositionalEncoding(space)(np.array([[1.0]]))
        >>> np.asarray(code).round(2)
        array([[0.84, 0.01, 0.54, 1.  ]], dtype=float32)
    """

    options = ("max_wavelength",)

    def __init__(
        self,
        space: Space,
        max_wavelength: float = 10000.0,
        **kwargs,
    ) -> None:
        super().__init__(space, **kwargs)
        self.max_wavelength = max_wavelength

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Encodes [n, 1] as sines and cosines of grid steps.

        Args:
            values: Raw values, [n, 1].
            factor: The factor.
        """
        num_waves = self.code_size(factor) // 2  # K
        exponents = -np.arange(num_waves) / num_waves
        frequencies = self.max_wavelength**exponents
        frequencies = frequencies.astype(np.float32)

        offset = values - factor.low
        steps = offset / factor.step  # [n, 1]
        phases = ops.multiply(steps, frequencies)  # [n, K]
        sines = ops.sin(phases)
        cosines = ops.cos(phases)
        return ops.concatenate([sines, cosines], axis=-1)

    def code_size(self, factor: Factor) -> int:
        """A sine and a cosine for every two values, rounded up.

        Args:
            factor: The factor.
        """
        num_waves = (factor.size + 1) // 2
        return 2 * num_waves


@keras.saving.register_keras_serializable(package="tfcomp")
class RampEncoding(FactorEncoding):
    """One unit that rises linearly with the factor (paper, section 3.1).

    Args:
        space: See `FactorEncoding`.
        scaled_to: `"signed"` for codes in [-1, 1], `"unit"` for [0, 1], or
            `"raw"` for the values themselves.
        absent_value: The code of an absent factor; at 0 in the range
            `"signed"` it is also the code of the middle value.

    Do not use it for a periodic factor, whose ends meet (`CircleEncoding`).

    Example:
        >>> space = FactorSpace((Factor("x", 3, 0.0, 2.0),))
        >>> np.asarray(RampEncoding(space)(np.array([[1.5]])))
        array([[0.5]], dtype=float32)
    """

    options = ("scaled_to", "absent_value")

    def __init__(
        self,
        space: Space,
        scaled_to: str = "signed",
        absent_value: float = 0.0,
        **kwargs,
    ) -> None:
        super().__init__(space, **kwargs)
        self.scaled_to = scaled_to
        self.absent_value = absent_value

    @classmethod
    def of_run(cls, config: RunConfig, space: FactorSpace) -> Self:
        """Takes the range and the code of absent factors of the run.

        Args:
            config: The run.
            space: The factors of its data.
        """
        return cls(
            space,
            scaled_to=config.model.ramp_range,
            absent_value=config.model.absent_value,
            name="code",
        )

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Scales [n, 1] to the range.

        Args:
            values: Raw values, [n, 1].
            factor: The factor.
        """
        if self.scaled_to == "raw":
            return values
        unit = _scale_to_unit(values, factor)
        if self.scaled_to == "unit":
            return unit
        return 2.0 * unit - 1.0

    def code_size(self, factor: Factor) -> int:
        """Counts the numbers of the code: one.

        Args:
            factor: The factor.
        """
        return 1


@keras.saving.register_keras_serializable(package="tfcomp")
class CircleEncoding(FactorEncoding):
    """A point on a circle for a periodic factor (paper, appendix F.2).

        z = [cos 2 pi u, sin 2 pi u],  u = (f - low) / (high - low)

    Other factors are ramps 2 u - 1. Do not use it for periodic factors with
    many values that a decoder must tell apart (`BumpEncoding`).

    Args:
        space: See `FactorEncoding`.

    Example:
        >>> angle = Factor("angle", 8, 0.0, 360.0, periodic=True)
        >>> code = CircleEncoding(FactorSpace((angle,)))(np.array([[45.0]]))
        >>> np.asarray(code).round(2)
        array([[0.71, 0.71]], dtype=float32)
    """

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Encodes [n, 1] as a point on the circle, or as a ramp.

        Args:
            values: Raw values, [n, 1].
            factor: The factor.
        """
        unit = _scale_to_unit(values, factor)
        if not factor.periodic:
            return 2.0 * unit - 1.0
        phase = 2.0 * math.pi * unit
        x = ops.cos(phase)
        y = ops.sin(phase)
        return ops.concatenate([x, y], axis=-1)

    def code_size(self, factor: Factor) -> int:
        """Two units for a periodic factor, one for others.

        Args:
            factor: The factor.
        """
        if factor.periodic:
            return 2
        return 1


def _scale_to_unit(values: KerasTensor, factor: Factor) -> KerasTensor:
    """Scales values so that a factor reaches from 0 to 1."""
    span = factor.high - factor.low
    offset = values - factor.low
    return offset / span


@keras.saving.register_keras_serializable(package="tfcomp")
class FactorIndex(FactorEncoding):
    """The nearest grid index of every factor, NaN where it is absent.

    It is the input of layers that look values up, such as `LowRankEmbedding`.
    Other layers would take the index for a size.

    Args:
        space: See `FactorEncoding`.

    Example:
        >>> space = FactorSpace((Factor("x", 3, 0.0, 2.0),))
        >>> np.asarray(FactorIndex(space)(np.array([[0.9]])))
        array([[1.]], dtype=float32)
    """

    differentiable = False
    absent_value = float("nan")

    def encode_factor(self, values: KerasTensor, factor: Factor) -> KerasTensor:
        """Finds the nearest grid index, [n, 1].

        Args:
            values: Raw values, [n, 1].
            factor: The factor.
        """
        return nearest_index(values, factor)

    def code_size(self, factor: Factor) -> int:
        """Counts the numbers of the code: one.

        Args:
            factor: The factor.
        """
        return 1
