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
slots) with masks m_k, which a branch draws beside x_k, and s the
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

Images = Sequence[keras.KerasTensor]


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

    def draw(name: str, index: int, depth: int) -> keras.KerasTensor:
        shape = (rows, columns, depth)
        pixels = keras.layers.Dense(
            math.prod(shape),
            bias_initializer=keras.initializers.Constant(bias),
            dtype="float32",
            name=f"{name}_{index}",
        )(hidden[:, index])
        return keras.layers.Reshape(shape)(pixels)

    num_masks = {"slots": len(codes), "occlusion": len(codes) - 1}
    parts = [draw("drawn", k, channels * rank) for k in range(len(codes))]
    masks = [draw("mask", k, 1) for k in range(num_masks.get(method, 0))]
    image = Composition(
        method, channels, len(codes), dtype="float32", name="image"
    )
    drawn = image([*parts, *masks])
    return keras.Model(factors, drawn, name=config.model.model)


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


def compose_additive(parts: Images, masks: Images) -> keras.KerasTensor:
    """sum_k x_k of parts [n, H, W, C]."""
    return functools.reduce(ops.add, parts)


def compose_product(parts: Images, masks: Images) -> keras.KerasTensor:
    """prod_k x_k of parts [n, H, W, C]."""
    return functools.reduce(ops.multiply, parts)


def compose_occlusion(parts: Images, masks: Images) -> keras.KerasTensor:
    """s(m_k) x_k + s(-m_k) (what is behind); masks [n, H, W, 1]."""
    *front, image = parts
    for part, mask in zip(reversed(front), reversed(masks), strict=True):
        share = ops.sigmoid(mask)
        image = share * part + (1.0 - share) * image
    return image


def compose_slots(parts: Images, masks: Images) -> keras.KerasTensor:
    """sum_k softmax_k(m_k) x_k, one group at a time; masks [n, H, W, 1]."""
    # A softmax of the stacked masks takes twice as long for copies.
    largest = ops.stop_gradient(functools.reduce(ops.maximum, masks))
    weights = [ops.exp(mask - largest) for mask in masks]
    drawn = [w * part for w, part in zip(weights, parts, strict=True)]
    return functools.reduce(ops.add, drawn) / functools.reduce(ops.add, weights)


METHODS = {
    "additive": compose_additive,
    "product": compose_product,
    "occlusion": compose_occlusion,
    "slots": compose_slots,
}


@keras.saving.register_keras_serializable(package="tfcomp")
class Composition(keras.layers.Layer):
    """What was drawn for K groups [n, H, W, R C], then masks, to one image.

    Sums over the R products that `product` may have.
    """

    def __init__(
        self, method: str, channels: int, groups: int, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.method, self.channels, self.groups = method, channels, groups

    def call(self, inputs: list) -> keras.KerasTensor:
        parts, masks = inputs[: self.groups], inputs[self.groups :]
        image = METHODS[self.method](parts, masks)
        if image.shape[-1] == self.channels:
            return image
        rows, columns, depth = image.shape[1:]
        terms = (-1, rows, columns, depth // self.channels, self.channels)
        return ops.sum(ops.reshape(image, terms), axis=-2)

    def compute_output_shape(self, input_shape: list) -> tuple:
        return (*input_shape[0][:3], self.channels)

    def get_config(self) -> dict:
        own = {"channels": self.channels, "groups": self.groups}
        return {**super().get_config(), "method": self.method, **own}
