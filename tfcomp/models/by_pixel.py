"""Decoders that draw every pixel, or patch, from the code and its place.

Spatial broadcast (Watters et al. 2019), a coordinate network, a transformer,
FiLM, which scales and shifts channels, and cross-attention with the interaction
penalty.
"""

import keras
from keras import ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code, make_grouped_code, stack_groups
from tfcomp.models.model_rules import HEADS, choose_patch
from tfcomp.models.pixels import (
    PixelDense,
    PixelLayer,
    PixelSum,
    make_sinusoids,
)


def build_broadcast(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The code and the coordinates at every pixel, then convolutions.

        x = C_(d+1) relu C_d ... relu C_1 relu(W [code, x_p, y_p] + b)

    of 3 x 3 convolutions C_1 .. C_d (d = `--depth`) with `--width` channels.
    As what is broadcast is constant or linear along the image, a first
    convolution of it that pads nothing, as published, is the product with W.
    Of 28 x 28 pixels, with a bump code, width 64 and depth 4 there are 152,065
    weights.
    """
    size, width = dataset.image_shape[:2], config.model.width
    factors, code = make_code(config, dataset)
    hidden = PixelDense(size, width, "coordinates", name="broadcast")(code)
    hidden = keras.layers.ReLU(name="stage_0")(hidden)
    for index in range(1, config.model.depth + 1):
        hidden = keras.layers.Conv2D(
            width, 3, padding="same", activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = keras.layers.Conv2D(
        dataset.image_shape[2], 3, padding="same", dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="broadcast")


def build_coordinate(config: RunConfig, dataset: Dataset) -> keras.Model:
    """One fully connected network that all pixels share.

        x_p = V phi_d( ... phi_1(W code + w + PE(p)))

    of `--depth` layers phi of `--width` units with a PReLU each. The published
    code of the paper has it as `spatial_aware_mlp`, with 146,435 weights for 56
    inputs, width 256 and depth 2. With a bump code of 28 x 28 pixels, width 64
    and depth 4 there are 20,357.
    """
    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = keras.layers.Dense(width, name="projection")(code)
    for index in range(config.model.depth):
        layer = (
            keras.layers.Dense(width, name=f"dense_{index}")
            if index
            else PixelDense(
                dataset.image_shape[:2], width, "sinusoids", name="dense_0"
            )
        )
        hidden = keras.layers.PReLU(
            alpha_initializer=keras.initializers.Constant(0.25),
            shared_axes=[1, 2, 3],
            name=f"stage_{index}",
        )(layer(hidden))
    draw = keras.layers.Dense(
        dataset.image_shape[2], dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="coordinate")


def build_transformer(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` encoder layers over the tokens W code + w + PE(p).

        h <- N(h + attention(h)),  h <- N(h + F relu(E h)),  x_p = V h_p

    for every pixel p, or every patch of `--patch_size` rows and columns (which
    by default are the fewest that leave at most 28 x 28 tokens),
    with N the normalization of a token (Vaswani et al. 2017). The published
    code of the paper has it with width 128, 2,048 units between E and F, where
    there are 4 times `--width` here, and dropout, which is left out. Of 28 x 28
    pixels, with a bump code, width 64 and depth 4 there are 203,649 weights.
    Time and memory grow with the square of the number of tokens.
    """
    (rows, columns, channels), width = dataset.image_shape, config.model.width
    factors, code = make_code(config, dataset)
    hidden = keras.layers.Dense(width, name="projection")(code)
    side = choose_patch(config, dataset)
    down, across = rows // side, columns // side
    hidden = PixelSum((down, across), name="placed")(hidden)
    hidden = keras.layers.Reshape((down * across, width), name="stage_0")(
        hidden
    )
    for index in range(1, config.model.depth + 1):
        hidden = _add_layer(hidden, index)
    pixels = keras.layers.Dense(
        channels * side**2, dtype="float32", name="pixels"
    )(hidden)
    if side > 1:
        patches = (down, across, side, side, channels)
        pixels = keras.layers.Reshape(patches, dtype="float32")(pixels)
        pixels = keras.layers.Permute((1, 3, 2, 4, 5), dtype="float32")(pixels)
    image = keras.layers.Reshape(
        dataset.image_shape, dtype="float32", name="image"
    )
    return keras.Model(factors, image(pixels), name="transformer")


def _add_layer(tokens: keras.KerasTensor, index: int) -> keras.KerasTensor:
    """An encoder layer, normalized after its sums as published."""
    layers, width = keras.layers, tokens.shape[-1]
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
    for a batch. Of 28 x 28 pixels, with a bump code, width 64 and depth 4
    there are 176,961 weights.
    """
    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = PixelTable(dataset.image_shape[:2], width, name="places")(code)
    for index in range(config.model.depth):
        hidden = keras.layers.Conv2D(
            width, 3, padding="same", name=f"convolution_{index}"
        )(hidden)
        modulation = keras.layers.Dense(2 * width, name=f"film_{index}")(code)
        hidden = Modulate(name=f"stage_{index}")([hidden, modulation])
    draw = keras.layers.Dense(
        dataset.image_shape[2], dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="film")


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelTable(PixelLayer):
    """PE(p) with so many features, [1, rows, columns, units], for any input."""

    def __init__(
        self, image_size: tuple[int, int], units: int, **kwargs
    ) -> None:
        super().__init__(image_size, **kwargs)
        self.units = units

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        table = make_sinusoids(*self.image_size, self.units)
        return ops.cast(table[None], self.compute_dtype)

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="tfcomp")
class Modulate(keras.layers.Layer):
    """relu((1 + gamma) h + beta) of h [n or 1, H, W, k] and both [n, 2 k]."""

    def call(self, inputs: list) -> keras.KerasTensor:
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
    Of 28 x 28 pixels, with a bump code, width 64 and depth 4 there are 36,801
    weights.
    """
    model = config.model
    factors, codes = make_grouped_code(config, dataset)
    tokens = [
        keras.layers.Dense(model.width, name=f"token_{index}")(code)
        for index, code in enumerate(codes)
    ]
    tokens = stack_groups(tokens, "stage_0")
    hidden = CrossAttention(
        dataset.image_shape[:2], model.interaction_weight, name="stage_1"
    )(tokens)
    for index in range(2, model.depth + 2):
        hidden = keras.layers.Dense(
            model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = keras.layers.Dense(
        dataset.image_shape[2], dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="attention")


@keras.saving.register_keras_serializable(package="tfcomp")
class CrossAttention(PixelLayer):
    """PE(p) plus what the pixel takes from the tokens, in `HEADS` heads.

    The maps of queries and keys, and those of values and outputs, are applied
    to the few tokens, not to the many pixels: the same products in another
    order.

    Args:
        image_size: Rows and columns of the image.
        weight: That of the penalty of interactions.

    Input shape: [n, K, k] with k a multiple of `HEADS`.
    Output shape: [n, rows, columns, k].
    """

    def __init__(
        self, image_size: tuple[int, int], weight: float = 0.0, **kwargs
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

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        table = make_sinusoids(*self.image_size, inputs.shape[-1])
        table = ops.cast(table, inputs.dtype)  # [H, W, k]
        attention = self.attend(inputs, table)  # [n, H, W, heads, K]
        if self.weight:
            self.add_loss(self.weight * measure_interaction(attention))
        values = ops.einsum("njc,hcd->njhd", inputs, self.value)
        values = ops.einsum("njhd,hcd->nhjc", values, self.output_kernel)
        return table + ops.einsum("nrshj,nhjc->nrsc", attention, values)

    def attend(
        self, tokens: keras.KerasTensor, table: keras.KerasTensor
    ) -> keras.KerasTensor:
        """How much each pixel attends to each token: sums over tokens are 1."""
        keys = ops.einsum("njc,hcd->njhd", tokens, self.key)
        keys = ops.einsum("njhd,hcd->nhjc", keys, self.query)
        scores = ops.einsum("rsc,nhjc->nrshj", table, keys)
        return ops.softmax(scores * (tokens.shape[-1] // HEADS) ** -0.5)

    def get_config(self) -> dict:
        return {**super().get_config(), "weight": self.weight}


def measure_interaction(attention: keras.KerasTensor) -> keras.KerasTensor:
    """mean_p sum_(i<j) A_pi A_pj of attention [n, H, W, heads, K]."""
    shares = ops.mean(attention, axis=-2)  # [n, H, W, K], of sum 1
    return ops.mean(1.0 - ops.sum(ops.square(shares), axis=-1)) / 2.0
