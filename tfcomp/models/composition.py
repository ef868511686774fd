"""Composes the images of objects, pixel by pixel (`decoders/composed`)."""

import functools
from collections.abc import Sequence
from typing import Any

import keras
from keras import KerasTensor, layers, ops

Images = Sequence[KerasTensor]


def compose_occlusion(parts: Images, masks: Images) -> KerasTensor:
    """Returns s(m_k) x_k + s(-m_k) (image behind it); masks [n, H, W, 1]."""
    *front, image = parts
    for part, mask in zip(reversed(front), reversed(masks), strict=True):
        share = ops.sigmoid(mask)
        image = share * part + (1.0 - share) * image
    return image


def compose_slots(parts: Images, masks: Images) -> KerasTensor:
    """Returns sum_k softmax_k(m_k) x_k; masks are [n, H, W, 1]."""
    # A softmax of the stacked masks takes twice as long for copies.
    largest = ops.stop_gradient(functools.reduce(ops.maximum, masks))
    weights = [ops.exp(mask - largest) for mask in masks]
    drawn = [w * part for w, part in zip(weights, parts, strict=True)]
    return functools.reduce(ops.add, drawn) / functools.reduce(ops.add, weights)


@keras.saving.register_keras_serializable(package="tfcomp")
class Composition(layers.Layer):
    """Composes K groups [n, H, W, R C] of R products, and masks."""

    def __init__(
        self, method: str, channels: int, groups: int, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.method, self.channels, self.groups = method, channels, groups

    def call(self, inputs: list) -> KerasTensor:
        parts, masks = inputs[: self.groups], inputs[self.groups :]
        match self.method:
            case "occlusion":
                image = compose_occlusion(parts, masks)
            case "slots":
                image = compose_slots(parts, masks)
            case "additive":
                image = functools.reduce(ops.add, parts)
            case "product" | "low_rank_product":
                image = functools.reduce(ops.multiply, parts)
            case _:
                raise ValueError(f"there is no composition {self.method!r}")
        if image.shape[-1] == self.channels:
            return image
        rows, columns, depth = image.shape[1:]
        terms = (-1, rows, columns, depth // self.channels, self.channels)
        return ops.sum(ops.reshape(image, terms), axis=-2)

    def get_config(self) -> dict:
        own = {"channels": self.channels, "groups": self.groups}
        return super().get_config() | {"method": self.method} | own
