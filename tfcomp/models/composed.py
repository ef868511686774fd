"""Decoders that draw each object by itself and compose what was drawn.

    x = compose(phi_1(code_1), ..., phi_K(code_K))

A branch phi_k, `--depth` ReLU layers of `--width` units and a linear layer of
pixels, draws one of `--groups`: the factors of an object, by default each
factor by itself. The decoders differ in `compose` alone, pixel by pixel; with
two groups and a bump code of 28 x 28 pixels, width 64 and depth 4 they have so
many weights:

    additive          sum_k x_k                            130,592
    product           prod_k x_k                           130,592
    low_rank_product  sum_r prod_k x_kr, R = `--rank`    3,290,112
    occlusion         s(m_1) x_1 + s(-m_1) (s(m_2) x_2     181,552
                        + s(-m_2) (... x_K))
    slots             sum_k softmax_k(m_k) x_k             232,512

(Lachapelle et al. 2023 for sums, Wiedemer et al. 2023 for occlusion, 2024 for
slots) with masks m_k, which a branch draws beside its channels, and s the
sigmoid. Of `occlusion` the groups are listed from front to back.
"""

import functools
import math
from collections.abc import Sequence

import keras
from keras import ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_grouped_code

Parts = Sequence[keras.KerasTensor]


def build_additive(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The sum of what the branches draw."""
    return _build(config, dataset, "additive")


def build_product(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The product of what the branches draw."""
    return _build(config, dataset, "product")


def build_low_rank_product(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The sum of `--rank` products."""
    return _build(config, dataset, "product", rank=config.model.rank)


def build_occlusion(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Objects in front of each other, through soft masks."""
    return _build(config, dataset, "occlusion")


def build_slots(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Objects that compete for pixels by a softmax."""
    return _build(config, dataset, "slots")


def _build(
    config: RunConfig, dataset: Dataset, method: str, rank: int = 1
) -> keras.Model:
    factors, codes = make_grouped_code(config, dataset)
    width, hidden = config.model.width, codes
    for index in range(config.model.depth):
        hidden = Branches(width, name=f"stage_{index}")(hidden)
    # A product of K numbers near 0 hardly moves: start at the image 1.
    bias = rank ** (-1 / len(codes)) if method == "product" else 0.0
    rows, columns, channels = dataset.image_shape
    parts = []
    for index in range(len(codes)):
        has_mask = method == "slots" or (
            method == "occlusion" and index < len(codes) - 1
        )
        shape = (rows, columns, channels * rank + has_mask)
        draw = keras.layers.Dense(
            math.prod(shape),
            bias_initializer=keras.initializers.Constant(bias),
            dtype="float32",
            name=f"pixels_{index}",
        )
        parts.append(keras.layers.Reshape(shape)(draw(hidden[:, index])))
    image = Composition(method, channels, dtype="float32", name="image")
    return keras.Model(factors, image(parts), name=config.model.model)


@keras.saving.register_keras_serializable(package="tfcomp")
class Branches(keras.layers.Layer):
    """A dense ReLU layer for each group: [n, K, ...] -> [n, K, units].

    The first one takes a list of codes [n, k], which may differ in length.
    """

    def __init__(self, units: int, **kwargs) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape: list | tuple) -> None:
        sizes = (
            [shape[-1] for shape in input_shape]
            if _is_list(input_shape)
            else [input_shape[-1]] * input_shape[1]
        )
        self.kernels = [
            self.add_weight((size, self.units), "glorot_uniform")
            for size in sizes
        ]
        self.biases = [self.add_weight((self.units,), "zeros") for _ in sizes]

    def call(self, inputs: list | keras.KerasTensor) -> keras.KerasTensor:
        parts = inputs
        if not isinstance(inputs, (list, tuple)):
            parts = ops.unstack(inputs, axis=1)
        drawn = [
            ops.matmul(part, kernel) + bias
            for part, kernel, bias in zip(
                parts, self.kernels, self.biases, strict=True
            )
        ]
        return ops.relu(ops.stack(drawn, axis=1))

    def compute_output_shape(self, input_shape: list | tuple) -> tuple:
        if _is_list(input_shape):
            return (input_shape[0][0], len(input_shape), self.units)
        return (*input_shape[:2], self.units)

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}


def _is_list(shape: list | tuple) -> bool:
    return isinstance(shape[0], (list, tuple))


def compose_additive(parts: Parts, channels: int) -> keras.KerasTensor:
    """sum_k x_k of parts [n, H, W, C]."""
    return functools.reduce(ops.add, parts)


def compose_product(parts: Parts, channels: int) -> keras.KerasTensor:
    """sum_r prod_k x_kr of parts [n, H, W, R C]."""
    terms = functools.reduce(ops.multiply, parts)
    shape = (-1, *terms.shape[1:3], terms.shape[3] // channels, channels)
    return ops.sum(ops.reshape(terms, shape), axis=-2)


def compose_occlusion(parts: Parts, channels: int) -> keras.KerasTensor:
    """x_k s(m_k) + s(-m_k) (what is behind), [n, H, W, C + 1], the last C."""
    *front, image = parts
    for part in reversed(front):
        drawn, mask = part[..., :channels], ops.sigmoid(part[..., channels:])
        image = drawn * mask + (1.0 - mask) * image
    return image


def compose_slots(parts: Parts, channels: int) -> keras.KerasTensor:
    """sum_k softmax_k(m_k) x_k of parts [n, H, W, C + 1]."""
    stacked = ops.stack(list(parts))  # [K, n, H, W, C + 1]
    shares = ops.softmax(stacked[..., channels:], axis=0)
    return ops.sum(stacked[..., :channels] * shares, axis=0)


METHODS = {
    "additive": compose_additive,
    "product": compose_product,
    "occlusion": compose_occlusion,
    "slots": compose_slots,
}


@keras.saving.register_keras_serializable(package="tfcomp")
class Composition(keras.layers.Layer):
    """What was drawn, a list of [n, H, W, ...], to one image [n, H, W, C]."""

    def __init__(self, method: str, channels: int, **kwargs) -> None:
        super().__init__(**kwargs)
        self.method, self.channels = method, channels

    def call(self, inputs: list) -> keras.KerasTensor:
        return METHODS[self.method](inputs, self.channels)

    def compute_output_shape(self, input_shape: list) -> tuple:
        return (*input_shape[0][:3], self.channels)

    def get_config(self) -> dict:
        own = {"method": self.method, "channels": self.channels}
        return {**super().get_config(), **own}
