"""Layers of the decoder `film`: places of pixels, and their modulation."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import KerasTensor, layers, ops

from tfcomp.models import pixels


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelTable(pixels.PixelLayer):
    """PE(p) with so many features, [1, rows, columns, units], for any input."""

    def __init__(
        self, image_size: Sequence[int], units: int, **kwargs: Any
    ) -> None:
        super().__init__(image_size, **kwargs)
        self.units = units

    def call(self, inputs: KerasTensor) -> KerasTensor:
        table = pixels.make_sinusoids(*self.image_size, self.units)
        return ops.cast(table[None], self.compute_dtype)

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="tfcomp")
class Modulate(layers.Layer):
    """relu((1 + gamma) h + beta) of h [n or 1, H, W, k] and both [n, 2 k]."""

    def call(self, inputs: list) -> KerasTensor:
        hidden, modulation = inputs
        scale, shift = ops.split(modulation[:, None, None], 2, axis=-1)
        return ops.relu((1.0 + scale) * hidden + shift)
