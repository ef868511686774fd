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
    """Returns the decoder of this module that `--model` names."""
    from tfcomp.models.pixels import Composition

    model, (rows, columns, channels) = config.model, dataset.image_shape
    method = model.model
    factors, parts = registry.make_grouped_code(config, dataset)
    for index in range(model.depth):
        hidden = registry.stack_groups(
            [
                layers.Dense(model.width, "relu", name=f"dense_{index}_{k}")(x)
                for k, x in enumerate(parts)
            ],
            f"stage_{index}",
        )
        parts = keras.ops.unstack(hidden, axis=1)  # its gradient is one stack
    count = len(parts)
    rank = model.rank if method == "low_rank_product" else 1
    # A product of K numbers near 0 hardly moves: start at the image 1.
    bias = rank ** (-1 / count) if "product" in method else 0.0
    shape = (rows, columns, channels * rank)
    images = [_draw(x, shape, bias, f"drawn_{k}") for k, x in enumerate(parts)]
    num_masks = {"slots": count, "occlusion": count - 1}.get(method, 0)
    for k, x in enumerate(parts[:num_masks]):
        images.append(_draw(x, (rows, columns, 1), 0.0, f"mask_{k}"))
    compose = Composition(
        method, channels, count, dtype="float32", name="image"
    )
    return keras.Model(factors, compose(images), name=method)


def _draw(
    hidden: keras.KerasTensor, shape: tuple, bias: float, name: str
) -> keras.KerasTensor:
    start = keras.initializers.Constant(bias)
    dense = layers.Dense(
        math.prod(shape), bias_initializer=start, dtype="float32", name=name
    )
    return layers.Reshape(shape, dtype="float32")(dense(hidden))
