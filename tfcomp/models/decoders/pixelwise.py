"""Decoders that know where a pixel is, by the layers of `pixels`."""

from __future__ import annotations

import math

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import registry
from tfcomp.models.registry import HEADS, MODELS, keras, layers

MAX_TOKENS = 28 * 28  # if the patch is free


def _check_sinusoids(config: RunConfig, dataset: Dataset) -> None:
    registry.check_groups(config, dataset)
    if config.model.width % HEADS:
        raise registry.refuse(config, "width", f"must be a multiple of {HEADS}")
    if config.model.model == "transformer":
        choose_patch(config, dataset)


def choose_patch(config: RunConfig, dataset: Dataset) -> int:
    """Returns the rows and columns of pixels of a token, a divisor."""
    rows, columns, _ = dataset.image_shape
    side, area = math.gcd(rows, columns), rows * columns
    asked = config.model.patch_size
    divisors = [d for d in range(1, side + 1) if side % d == 0]
    if asked and asked not in divisors:
        rule = f"must be 0, or one of {', '.join(map(str, divisors))}"
        raise ConfigError("patch_size", rule, asked)
    few = (d for d in divisors if area // d**2 <= MAX_TOKENS)
    return asked or next(few, side)


@MODELS.register("coordinate", check=_check_sinusoids)
def build_coordinate(config: RunConfig, dataset: Dataset) -> keras.Model:
    """One fully connected network that all pixels share.

        x_p = V phi_d( ... phi_1(W code + w + PE(p)))

    of `--depth` layers phi of `--width` units with a PReLU each, as
    `spatial_aware_mlp` of the paper's published code.
    """
    from tfcomp.models import pixels

    width = config.model.width
    factors, code = registry.make_code(config, dataset)
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


@MODELS.register("film", check=_check_sinusoids)
def build_film(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Convolutions of the pixels' places, which the code modulates.

        h_0 = PE(p),  h_l = relu((1 + gamma_l) C_l h_(l-1) + beta_l),  x = V h_d
        (gamma_l, beta_l) = G_l code + g_l

    (Perez et al. 2018) with `--depth` 3 x 3 convolutions C of `--width`
    channels. The first one is computed once for a batch.
    """
    from tfcomp.models import pixels

    width = config.model.width
    factors, code = registry.make_code(config, dataset)
    places = pixels.PixelTable(dataset.image_shape[:2], width, name="places")
    hidden = places(code)
    for index in range(config.model.depth):
        hidden = layers.Conv2D(
            width, 3, padding="same", name=f"convolution_{index}"
        )(hidden)
        modulation = layers.Dense(2 * width, name=f"film_{index}")(code)
        modulate = pixels.Modulate(name=f"stage_{index}")
        hidden = modulate([hidden, modulation])
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="film")


@MODELS.register("attention", check=_check_sinusoids)
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
    from tfcomp.models import pixels

    model = config.model
    factors, codes = registry.make_grouped_code(config, dataset)
    tokens = [
        layers.Dense(model.width, name=f"token_{index}")(code)
        for index, code in enumerate(codes)
    ]
    attend = pixels.CrossAttention(
        dataset.image_shape[:2], model.interaction_weight, name="stage_1"
    )
    hidden = attend(registry.stack_groups(tokens, "stage_0"))
    for index in range(2, model.depth + 2):
        hidden = layers.Dense(
            model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="attention")


@MODELS.register("transformer", check=_check_sinusoids)
def build_transformer(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` encoder layers over the tokens W code + w + PE(p).

        h <- N(h + attention(h)),  h <- N(h + F relu(E h)),  x_p = V h_p

    for every pixel p, or every patch of `--patch_size` rows and columns, with N
    the normalization of a token (Vaswani et al. 2017). E has 4 times `--width`
    units; the published code has 2,048, and dropout.
    """
    from tfcomp.models import pixels

    (rows, columns, channels), width = dataset.image_shape, config.model.width
    factors, code = registry.make_code(config, dataset)
    hidden = layers.Dense(width, name="projection")(code)
    side = choose_patch(config, dataset)
    down, across = rows // side, columns // side
    hidden = pixels.PixelSum((down, across), name="placed")(hidden)
    hidden = layers.Reshape((down * across, width), name="stage_0")(hidden)
    for index in range(1, config.model.depth + 1):
        hidden = _add_encoder_layer(hidden, index)
    draw = layers.Dense(channels * side**2, dtype="float32", name="pixels")
    drawn = draw(hidden)
    if side > 1:
        patches = (down, across, side, side, channels)
        drawn = layers.Reshape(patches, dtype="float32")(drawn)
        drawn = layers.Permute((1, 3, 2, 4, 5), dtype="float32")(drawn)
    image = layers.Reshape(dataset.image_shape, dtype="float32", name="image")
    return keras.Model(factors, image(drawn), name="transformer")


def _add_encoder_layer(
    tokens: keras.KerasTensor, index: int
) -> keras.KerasTensor:
    width = tokens.shape[-1]
    attend = layers.MultiHeadAttention(
        HEADS, width // HEADS, name=f"attention_{index}"
    )
    seen = layers.Add()([tokens, attend(tokens, tokens)])
    seen = layers.LayerNormalization(epsilon=1e-5)(seen)
    fed = layers.Dense(4 * width, activation="relu")(seen)
    fed = layers.Add()([seen, layers.Dense(width)(fed)])
    return layers.LayerNormalization(epsilon=1e-5, name=f"stage_{index}")(fed)
