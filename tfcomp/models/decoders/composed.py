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
        hidden = []
        for k, part in enumerate(parts):
            dense = layers.Dense(
                model.width,
                activation="relu",
                name=f"dense_{index}_{k}",
            )
            activations = dense(part)
            hidden.append(activations)
        stage = registry.stack_groups(hidden, f"stage_{index}")
        parts = keras.ops.unstack(stage, axis=1)  # its gradient is one stack

    count = len(parts)
    rank = 1
    if method == "low_rank_product":
        rank = model.rank
    bias = 0.0
    if method in ("product", "low_rank_product"):
        # A product of K numbers near 0 hardly moves: start at the image 1.
        bias = rank ** (-1 / count)
    shape = (rows, columns, channels * rank)
    images = []
    for k, part in enumerate(parts):
        image = _draw(
            part,
            shape,
            bias,
            name=f"drawn_{k}",
        )
        images.append(image)

    num_masks = 0
    if method == "slots":
        num_masks = count
    elif method == "occlusion":
        num_masks = count - 1
    for k, part in enumerate(parts[:num_masks]):
        mask = _draw(
            part,
            (rows, columns, 1),
            bias=0.0,
            name=f"mask_{k}",
        )
        images.append(mask)

    compose = Composition(
        method,
        channels=channels,
        groups=count,
        dtype="float32",
        name="image",
    )
    image = compose(images)
    return keras.Model(factors, image, name=method)


def _draw(
    hidden: keras.KerasTensor,
    shape: tuple,
    bias: float,
    name: str,
) -> keras.KerasTensor:
    """Draws an image [n, *shape] by a linear layer that starts at a bias."""
    initializer = keras.initializers.Constant(bias)
    dense = layers.Dense(
        math.prod(shape),
        bias_initializer=initializer,
        dtype="float32",
        name=name,
    )
    pixels = dense(hidden)
    arrange = layers.Reshape(shape, dtype="float32")
    return arrange(pixels)
