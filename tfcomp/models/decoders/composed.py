"""Decoders that draw each object by itself and compose the images.

    x = compose(phi_1(code_1), ..., phi_K(code_K))

A branch phi_k, `--depth` ReLU layers of `--width` units and a linear layer of
pixels, draws one of `--groups`: the factors of an object, by default each
factor by itself. The decoders differ in `compose` alone, pixel by pixel:

    additive          sum_k x_k (Lachapelle et al. 2023)
    product           prod_k x_k
    low_rank_product  sum_r prod_k x_kr, r = 1 .. `--rank`
    occlusion         s(m_1) x_1 + s(-m_1) (s(m_2) x_2 + s(-m_2) (... x_K)),
                      from front to back (Wiedemer et al. 2023)
    slots             sum_k softmax_k(m_k) x_k (Wiedemer et al. 2024)

with masks m_k, which a branch draws beside x_k, and s the sigmoid.
"""

from __future__ import annotations

import math

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import registry
from tfcomp.models.registry import MODELS, check_groups, keras, layers


@MODELS.register("additive", check=check_groups)
@MODELS.register("product", check=check_groups)
@MODELS.register("low_rank_product", check=check_groups)
@MODELS.register("occlusion", check=check_groups)
@MODELS.register("slots", check=check_groups)
def build_composed(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Builds the decoder of this module that `--model` names.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models.pixels import Composition

    model = config.model
    method = model.model
    rows, columns, channels = dataset.image_shape

    factors, parts = registry.make_grouped_code(config, dataset)
    for index in range(model.depth):
        parts = _make_stage(parts, index, model.width)

    count = len(parts)
    rank = 1
    if method == "low_rank_product":
        rank = model.rank
    bias = 0.0
    if method in ("product", "low_rank_product"):
        # A product of K numbers near 0 hardly moves: start at the image 1.
        bias = rank ** (-1 / count)
    image_shape = (rows, columns, channels * rank)
    images = _draw_each(parts, image_shape, bias, name="drawn")

    num_masks = 0
    if method == "slots":
        num_masks = count
    elif method == "occlusion":
        num_masks = count - 1
    masked = parts[:num_masks]
    mask_shape = (rows, columns, 1)
    masks = _draw_each(masked, mask_shape, bias=0.0, name="mask")

    compose = Composition(
        method,
        channels=channels,
        groups=count,
        dtype="float32",
        name="image",
    )
    image = compose(images + masks)
    return keras.Model(factors, image, name=method)


def _make_stage(
    parts: list[keras.KerasTensor],
    index: int,
    width: int,
) -> list[keras.KerasTensor]:
    """Makes a ReLU layer for each branch, [n, width] each."""
    hidden = []
    for k, part in enumerate(parts):
        dense = layers.Dense(
            width,
            activation="relu",
            name=f"dense_{index}_{k}",
        )
        activations = dense(part)
        hidden.append(activations)
    stage = registry.stack_groups(hidden, f"stage_{index}")
    return keras.ops.unstack(stage, axis=1)  # its gradient is one stack


def _draw_each(
    parts: list[keras.KerasTensor],
    shape: tuple,
    bias: float,
    name: str,
) -> list[keras.KerasTensor]:
    """Draws images [n, *shape] by linear layers that start at a bias."""
    images = []
    for k, part in enumerate(parts):
        initializer = keras.initializers.Constant(bias)
        dense = layers.Dense(
            math.prod(shape),
            bias_initializer=initializer,
            dtype="float32",
            name=f"{name}_{k}",
        )
        pixels = dense(part)
        arrange = layers.Reshape(shape, dtype="float32")
        image = arrange(pixels)
        images.append(image)
    return images
