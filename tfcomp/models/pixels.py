"""Layers that draw pixels, which they know by row r and column c.

Positions are known as coordinates x_p, y_p in [-1, 1], or as sinusoids:

    PE(p) = [sin w_k r, cos w_k r, sin w_k c, cos w_k c],  w_k = 10000^(-k / K)

with k = 0 .. K - 1 and 4 K features (Vaswani et al. 2017, in two dimensions).
"""

import functools
from typing import Any

import keras
import numpy as np
from keras import KerasTensor, ops

from tfcomp.models.registry import HEADS

WAVELENGTH = 10000.0


def make_coordinates(rows: int, columns: int) -> np.ndarray:
    """Returns x_p and y_p of every pixel, float32 [rows, columns, 2]."""
    y, x = (np.linspace(-1.0, 1.0, side) for side in (rows, columns))
    return np.stack(np.meshgrid(x, y), axis=-1).astype(np.float32)


def make_sinusoids(rows: int, columns: int, features: int) -> np.ndarray:
    """Returns PE(p) of every pixel, float32 [rows, columns, features]."""
    count = features // 4
    frequencies = WAVELENGTH ** (-np.arange(count) / count)  # [K]
    waves = []
    for index in np.indices((rows, columns)):
        phases = index[..., np.newaxis] * frequencies
        waves += [np.sin(phases), np.cos(phases)]
    return np.concatenate(waves, axis=-1).astype(np.float32)


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelSum(keras.layers.Layer):
    """z_n + PE(p): [n, k] -> [n, rows, columns, k]."""

    def __init__(self, image_size: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.image_size = image_size

    def call(self, inputs: KerasTensor) -> KerasTensor:
        table = make_sinusoids(*self.image_size, inputs.shape[-1])
        return inputs[:, None, None] + ops.cast(table, inputs.dtype)


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelDense(keras.layers.Layer):
    """A linear layer of z_n + PE(p), or of z_n and (x_p, y_p) side by side.

    It is one product for each image and one for each pixel.
    """

    def __init__(
        self, image_size: tuple[int, int], units: int, positions: str, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.image_size, self.units = image_size, units
        self.positions = positions

    def build(self, input_shape: tuple) -> None:
        inputs, beside = input_shape[-1], self.positions == "coordinates"
        shape = (inputs + 2 * beside, self.units)
        self.kernel = self.add_weight(shape, "glorot_uniform", name="kernel")
        self.bias = self.add_weight((self.units,), "zeros", name="bias")
        if beside:
            self._table = make_coordinates(*self.image_size)
        else:
            self._table = make_sinusoids(*self.image_size, inputs)

    def call(self, inputs: KerasTensor) -> KerasTensor:
        count, features = inputs.shape[-1], self._table.shape[-1]
        table = ops.cast(self._table, inputs.dtype)
        pixels = ops.matmul(table, self.kernel[-features:]) + self.bias
        images = ops.matmul(inputs, self.kernel[:count])  # [n, units]
        return images[:, None, None] + pixels


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelTable(keras.layers.Layer):
    """Returns PE(p), [1, rows, columns, units], for any input."""

    def __init__(
        self, image_size: tuple[int, int], units: int, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.image_size, self.units = image_size, units

    def call(self, inputs: KerasTensor) -> KerasTensor:
        table = make_sinusoids(*self.image_size, self.units)
        return ops.cast(table[None], self.compute_dtype)


@keras.saving.register_keras_serializable(package="tfcomp")
class Modulate(keras.layers.Layer):
    """Returns relu((1 + gamma) h + beta); h is [n or 1, H, W, k]."""

    def call(self, inputs: list) -> KerasTensor:
        hidden, modulation = inputs
        scale, shift = ops.split(modulation[:, None, None], 2, axis=-1)
        return ops.relu((1.0 + scale) * hidden + shift)


@keras.saving.register_keras_serializable(package="tfcomp")
class CrossAttention(keras.layers.Layer):
    """PE(p) plus attention to tokens: [n, K, k] -> [n, rows, columns, k]."""

    def __init__(
        self, image_size: tuple[int, int], weight: float = 0.0, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.image_size, self.weight = image_size, weight

    def build(self, input_shape: tuple) -> None:
        width = input_shape[-1]
        shape = (HEADS, width, width // HEADS)
        self.query, self.key, self.value, self.output_kernel = (
            self.add_weight(shape, "glorot_uniform", name=name)
            for name in ("query", "key", "value", "output")
        )

    def call(self, inputs: KerasTensor) -> KerasTensor:
        table = make_sinusoids(*self.image_size, inputs.shape[-1])
        table = ops.cast(table, inputs.dtype)  # [H, W, k]
        keys = ops.einsum("njc,hcd->njhd", inputs, self.key)
        keys = ops.einsum("njhd,hcd->nhjc", keys, self.query)
        scores = ops.einsum("rsc,nhjc->nrshj", table, keys)
        # Attention of pixels to tokens, [n, H, W, heads, K].
        scale = (inputs.shape[-1] // HEADS) ** -0.5
        attention = ops.softmax(scores * scale)
        if self.weight:
            self.add_loss(self.weight * measure_interaction(attention))
        values = ops.einsum("njc,hcd->njhd", inputs, self.value)
        values = ops.einsum("njhd,hcd->nhjc", values, self.output_kernel)
        return table + ops.einsum("nrshj,nhjc->nrsc", attention, values)


def measure_interaction(attention: KerasTensor) -> KerasTensor:
    """Returns mean_p sum_(i<j) A_pi A_pj of attention [n, H, W, heads, K]."""
    shares = ops.mean(ops.cast(attention, "float32"), axis=-2)  # [n, H, W, K]
    return ops.mean(1.0 - ops.sum(ops.square(shares), axis=-1)) / 2.0


@keras.saving.register_keras_serializable(package="tfcomp")
class Composition(keras.layers.Layer):
    """Composes K groups [n, H, W, R C] of R products; masks [n, H, W, 1]."""

    def __init__(
        self, method: str, channels: int, groups: int, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.method, self.channels, self.groups = method, channels, groups

    def call(self, inputs: list) -> KerasTensor:
        parts, masks = inputs[: self.groups], inputs[self.groups :]
        if self.method == "occlusion":
            *front, image = parts
            for part, mask in zip(
                reversed(front), reversed(masks), strict=True
            ):
                share = ops.sigmoid(mask)
                image = share * part + (1.0 - share) * image
        elif self.method == "slots":
            # A softmax of the stacked masks takes twice as long for copies.
            largest = ops.stop_gradient(functools.reduce(ops.maximum, masks))
            weights = [ops.exp(mask - largest) for mask in masks]
            drawn = [w * part for w, part in zip(weights, parts, strict=True)]
            total = functools.reduce(ops.add, weights)
            image = functools.reduce(ops.add, drawn) / total
        else:
            is_sum = self.method == "additive"
            image = functools.reduce(ops.add if is_sum else ops.multiply, parts)
        if image.shape[-1] == self.channels:
            return image
        rows, columns, depth = image.shape[1:]
        terms = (-1, rows, columns, depth // self.channels, self.channels)
        return ops.sum(ops.reshape(image, terms), axis=-2)
