"""Decoders that draw every pixel, or patch, from the code and its place."""

from collections.abc import Sequence

import keras
from keras import KerasTensor, layers, ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import pixels
from tfcomp.models.encodings.base import (
    make_code,
    make_grouped_code,
    stack_groups,
)
from tfcomp.models.model_rules import HEADS, choose_patch


def build_broadcast(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Spatial broadcast (Watters et al. 2019), then convolutions.

        x = C_(d+1) relu C_d ... relu C_1 relu(W [code, x_p, y_p] + b)

    of 3 x 3 convolutions C_1 .. C_d (d = `--depth`) with `--width` channels.
    The product with W is the published first convolution, which pads nothing,
    as what is broadcast is constant or linear along the image.
    """
    size, width = dataset.image_shape[:2], config.model.width
    factors, code = make_code(config, dataset)
    place = pixels.PixelDense(size, width, "coordinates", name="broadcast")
    hidden = layers.ReLU(name="stage_0")(place(code))
    for index in range(1, config.model.depth + 1):
        hidden = layers.Conv2D(
            width, 3, padding="same", activation="relu", name=f"stage_{index}"
        )(hidden)
    image = layers.Conv2D(
        dataset.image_shape[2], 3, padding="same", dtype="float32", name="image"
    )(hidden)
    return keras.Model(factors, image, name="broadcast")


def build_coordinate(config: RunConfig, dataset: Dataset) -> keras.Model:
    """One fully connected network that all pixels share.

        x_p = V phi_d( ... phi_1(W code + w + PE(p)))

    of `--depth` layers phi of `--width` units with a PReLU each, as
    `spatial_aware_mlp` of the paper's published code.
    """
    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = layers.Dense(width, name="projection")(code)
    for index in range(config.model.depth):
        if index:
            layer = layers.Dense(width, name=f"dense_{index}")
        else:
            size = dataset.image_shape[:2]
            layer = pixels.PixelDense(size, width, "sinusoids", name="dense_0")
        hidden = layers.PReLU(
            alpha_initializer=keras.initializers.Constant(0.25),
            shared_axes=[1, 2, 3],
            name=f"stage_{index}",
        )(layer(hidden))
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="coordinate")


def build_transformer(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` encoder layers over the tokens W code + w + PE(p).

        h <- N(h + attention(h)),  h <- N(h + F relu(E h)),  x_p = V h_p

    for every pixel p, or every patch of `--patch_size` rows and columns, with N
    the normalization of a token (Vaswani et al. 2017). The published code of
    the paper has 2,048 units between E and F, where there are 4 times `--width`
    here, and dropout. Time and memory grow with the square of the tokens.
    """
    (rows, columns, channels), width = dataset.image_shape, config.model.width
    factors, code = make_code(config, dataset)
    hidden = layers.Dense(width, name="projection")(code)
    side = choose_patch(config, dataset)
    down, across = rows // side, columns // side
    hidden = pixels.PixelSum((down, across), name="placed")(hidden)
    hidden = layers.Reshape((down * across, width), name="stage_0")(hidden)
    for index in range(1, config.model.depth + 1):
        hidden = _add_layer(hidden, index)
    draw = layers.Dense(channels * side**2, dtype="float32", name="pixels")
    drawn = draw(hidden)
    if side > 1:
        patches = (down, across, side, side, channels)
        drawn = layers.Reshape(patches, dtype="float32")(drawn)
        drawn = layers.Permute((1, 3, 2, 4, 5), dtype="float32")(drawn)
    image = layers.Reshape(dataset.image_shape, dtype="float32", name="image")
    return keras.Model(factors, image(drawn), name="transformer")


def _add_layer(tokens: KerasTensor, index: int) -> KerasTensor:
    """An encoder layer, normalized after its sums as published."""
    width = tokens.shape[-1]
    attend = layers.MultiHeadAttention(
        HEADS, width // HEADS, name=f"attention_{index}"
    )
    seen = layers.Add()([tokens, attend(tokens, tokens)])
    seen = layers.LayerNormalization(epsilon=1e-5)(seen)
    fed = layers.Dense(4 * width, activation="relu")(seen)
    fed = layers.Add()([seen, layers.Dense(width)(fed)])
    return layers.LayerNormalization(epsilon=1e-5, name=f"stage_{index}")(fed)


def build_film(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Convolutions of the pixels' places, which the code modulates.

        h_0 = PE(p),  h_l = relu((1 + gamma_l) C_l h_(l-1) + beta_l),  x = V h_d
        (gamma_l, beta_l) = G_l code + g_l

    (Perez et al. 2018) with `--depth` 3 x 3 convolutions C of `--width`
    channels. The first of them is the same for all images and computed once
    for a batch.
    """
    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = PixelTable(dataset.image_shape[:2], width, name="places")(code)
    for index in range(config.model.depth):
        hidden = layers.Conv2D(
            width, 3, padding="same", name=f"convolution_{index}"
        )(hidden)
        modulation = layers.Dense(2 * width, name=f"film_{index}")(code)
        hidden = Modulate(name=f"stage_{index}")([hidden, modulation])
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="film")


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelTable(pixels.PixelLayer):
    """PE(p) with so many features, [1, rows, columns, units], for any input."""

    def __init__(self, image_size: Sequence[int], units: int, **kwargs) -> None:
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


def build_attention(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Every pixel asks the tokens of the factors, then decides by itself.

        t_k = T_k code_k + b_k
        h_p = PE(p) + sum_heads sum_k A_pk V t_k,  A_pk = softmax_k PE(p) K t_k
        x_p = V phi_d( ... phi_1(h_p))

    (Brady et al. 2025) with a token of `--width` numbers for each of `--groups`
    and `--depth` ReLU layers phi of as many units. The penalty

        `--interaction_weight` mean_p sum_(i<j) A_pi A_pj

    of A averaged over the heads is 0 where every pixel sees one token only.
    """
    model = config.model
    factors, codes = make_grouped_code(config, dataset)
    tokens = [
        layers.Dense(model.width, name=f"token_{index}")(code)
        for index, code in enumerate(codes)
    ]
    hidden = CrossAttention(
        dataset.image_shape[:2], model.interaction_weight, name="stage_1"
    )(stack_groups(tokens, "stage_0"))
    for index in range(2, model.depth + 2):
        hidden = layers.Dense(
            model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="attention")


@keras.saving.register_keras_serializable(package="tfcomp")
class CrossAttention(pixels.PixelLayer):
    """PE(p) plus what the pixel takes from the tokens, in `HEADS` heads.

    From [n, K, k] to [n, rows, columns, k], with a penalty of interactions. All
    maps are applied to the few tokens, not to the many pixels: the same
    products in another order.
    """

    def __init__(
        self, image_size: Sequence[int], weight: float = 0.0, **kwargs
    ) -> None:
        super().__init__(image_size, **kwargs)
        self.weight = weight

    def build(self, input_shape: tuple) -> None:
        width = input_shape[-1]
        shape = (HEADS, width, width // HEADS)
        self.query, self.key, self.value, self.output_kernel = (
            self.add_weight(shape, "glorot_uniform", name=name)
            for name in ("query", "key", "value", "output")
        )

    def call(self, inputs: KerasTensor) -> KerasTensor:
        table = pixels.make_sinusoids(*self.image_size, inputs.shape[-1])
        table = ops.cast(table, inputs.dtype)  # [H, W, k]
        attention = self.attend(inputs, table)  # [n, H, W, heads, K]
        if self.weight:
            self.add_loss(self.weight * measure_interaction(attention))
        values = ops.einsum("njc,hcd->njhd", inputs, self.value)
        values = ops.einsum("njhd,hcd->nhjc", values, self.output_kernel)
        return table + ops.einsum("nrshj,nhjc->nrsc", attention, values)

    def attend(self, tokens: KerasTensor, table: KerasTensor) -> KerasTensor:
        """How much each pixel attends to each token: sums over tokens are 1."""
        keys = ops.einsum("njc,hcd->njhd", tokens, self.key)
        keys = ops.einsum("njhd,hcd->nhjc", keys, self.query)
        scores = ops.einsum("rsc,nhjc->nrshj", table, keys)
        return ops.softmax(scores * (tokens.shape[-1] // HEADS) ** -0.5)

    def get_config(self) -> dict:
        return {**super().get_config(), "weight": self.weight}


def measure_interaction(attention: KerasTensor) -> KerasTensor:
    """mean_p sum_(i<j) A_pi A_pj of attention [n, H, W, heads, K]."""
    shares = ops.mean(attention, axis=-2)  # [n, H, W, K], of sum 1
    return ops.mean(1.0 - ops.sum(ops.square(shares), axis=-1)) / 2.0
