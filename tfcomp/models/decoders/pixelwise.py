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
    model = config.model
    if model.width % HEADS:
        raise registry.refuse(config, "width", f"must be a multiple of {HEADS}")
    if model.model == "transformer":
        choose_patch(config, dataset)


def choose_patch(config: RunConfig, dataset: Dataset) -> int:
    """Chooses the rows and columns of pixels of a token.

    Without `--patch_size` it is the smallest divisor of both sides of the
    image that leaves at most 784 tokens.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.

    Raises:
        ConfigError: If `--patch_size` does not divide both sides.
    """
    rows, columns, _ = dataset.image_shape
    side = math.gcd(rows, columns)
    divisors = []
    for divisor in range(1, side + 1):
        if side % divisor == 0:
            divisors.append(divisor)

    patch_size = config.model.patch_size
    if patch_size in divisors:
        return patch_size
    if patch_size:
        choices = ", ".join(map(str, divisors))
        rule = f"must be 0, or one of {choices}"
        raise ConfigError("patch_size", rule, patch_size)

    num_pixels = rows * columns
    for divisor in divisors:
        num_tokens = num_pixels // divisor**2
        if num_tokens <= MAX_TOKENS:
            return divisor
    return side


@MODELS.register("coordinate", check=_check_sinusoids)
def build_coordinate(config: RunConfig, dataset: Dataset) -> keras.Model:
    """One fully connected network that all pixels share.

        x_p = V phi_d( ... phi_1(W code + w + PE(p)))

    of `--depth` layers phi of `--width` units with a PReLU each, as
    `spatial_aware_mlp` of the paper's published code.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models.pixels import PixelDense

    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = registry.make_code(config, dataset)

    project = layers.Dense(width, name="projection")
    hidden = project(code)
    for index in range(config.model.depth):
        if index == 0:
            dense = PixelDense(
                (rows, columns),
                units=width,
                positions="sinusoids",
                name="dense_0",
            )
        else:
            dense = layers.Dense(width, name=f"dense_{index}")
        initializer = keras.initializers.Constant(0.25)
        prelu = layers.PReLU(
            alpha_initializer=initializer,
            shared_axes=[1, 2, 3],
            name=f"stage_{index}",
        )
        linear = dense(hidden)
        hidden = prelu(linear)

    draw = layers.Dense(
        channels,
        dtype="float32",
        name="image",
    )
    image = draw(hidden)
    return keras.Model(factors, image, name="coordinate")


@MODELS.register("film", check=_check_sinusoids)
def build_film(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Convolutions of the pixels' places, which the code modulates.

        h_0 = PE(p),  h_l = relu((1 + gamma_l) C_l h_(l-1) + beta_l),  x = V h_d
        (gamma_l, beta_l) = G_l code + g_l

    (Perez et al. 2018) with `--depth` 3 x 3 convolutions C of `--width`
    channels. The first one is computed once for a batch.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models.pixels import Modulate, PixelTable

    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = registry.make_code(config, dataset)

    place = PixelTable(
        (rows, columns),
        units=width,
        name="places",
    )
    hidden = place(code)
    for index in range(config.model.depth):
        convolve = layers.Conv2D(
            width,
            kernel_size=3,
            padding="same",
            name=f"convolution_{index}",
        )
        hidden = convolve(hidden)
        make_modulation = layers.Dense(2 * width, name=f"film_{index}")
        modulation = make_modulation(code)
        modulate = Modulate(name=f"stage_{index}")
        hidden = modulate([hidden, modulation])

    draw = layers.Dense(
        channels,
        dtype="float32",
        name="image",
    )
    image = draw(hidden)
    return keras.Model(factors, image, name="film")


@MODELS.register("attention", check=_check_sinusoids)
def build_attention(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Every pixel asks the tokens of the factors, then decides by itself.

        t_k = T_k code_k + b_k
        h_p = PE(p) + sum_heads sum_k A_pk V t_k,  A_pk = softmax_k PE(p) K t_k
        x_p = V phi_d( ... phi_1(h_p))

    (Brady et al. 2025) with a token of `--width` numbers for each of `--groups`
    and `--depth` ReLU layers phi of `--width` units. The penalty

        `--interaction_weight` mean_p sum_(i<j) A_pi A_pj

    of A averaged over the heads is 0 where every pixel sees one token only.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models.pixels import CrossAttention

    model = config.model
    rows, columns, channels = dataset.image_shape
    factors, codes = registry.make_grouped_code(config, dataset)

    tokens = []
    for index, code in enumerate(codes):
        make_token = layers.Dense(model.width, name=f"token_{index}")
        token = make_token(code)
        tokens.append(token)
    stacked = registry.stack_groups(tokens, "stage_0")

    attend = CrossAttention(
        (rows, columns),
        weight=model.interaction_weight,
        name="stage_1",
    )
    hidden = attend(stacked)
    for index in range(2, model.depth + 2):
        dense = layers.Dense(
            model.width,
            activation="relu",
            name=f"stage_{index}",
        )
        hidden = dense(hidden)

    draw = layers.Dense(
        channels,
        dtype="float32",
        name="image",
    )
    image = draw(hidden)
    return keras.Model(factors, image, name="attention")


@MODELS.register("transformer", check=_check_sinusoids)
def build_transformer(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` encoder layers over the tokens W code + w + PE(p).

        h <- N(h + attention(h)),  h <- N(h + F relu(E h)),  x_p = V h_p

    for every pixel p, or every patch of `--patch_size` rows and columns, with N
    the normalization of a token (Vaswani et al. 2017). E has 4 times `--width`
    units; the published code has 2,048, and dropout.

    Attention costs the square of the tokens: take patches for large images.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models.pixels import PixelSum

    width = config.model.width
    rows, columns, channels = dataset.image_shape
    side = choose_patch(config, dataset)
    down = rows // side
    across = columns // side

    factors, code = registry.make_code(config, dataset)
    num_tokens = down * across
    project = layers.Dense(width, name="projection")
    place = PixelSum((down, across), name="placed")
    flatten = layers.Reshape((num_tokens, width), name="stage_0")
    hidden = project(code)
    hidden = place(hidden)
    hidden = flatten(hidden)
    depth = config.model.depth
    for index in range(1, depth + 1):
        hidden = _add_encoder_layer(hidden, index)

    draw = layers.Dense(
        channels * side**2,
        dtype="float32",
        name="pixels",
    )
    pixels = draw(hidden)
    if side > 1:
        patches = (down, across, side, side, channels)
        order = (1, 3, 2, 4, 5)
        split = layers.Reshape(patches, dtype="float32")
        arrange = layers.Permute(order, dtype="float32")
        pixels = split(pixels)
        pixels = arrange(pixels)
    shape = layers.Reshape(
        dataset.image_shape,
        dtype="float32",
        name="image",
    )
    image = shape(pixels)
    return keras.Model(factors, image, name="transformer")


def _add_encoder_layer(
    tokens: keras.KerasTensor,
    index: int,
) -> keras.KerasTensor:
    """Adds attention and a network of each token, [n, tokens, k]."""
    width = tokens.shape[-1]
    attend = layers.MultiHeadAttention(
        HEADS,
        key_dim=width // HEADS,
        name=f"attention_{index}",
    )
    answers = attend(tokens, tokens)
    add = layers.Add()
    attended = add([tokens, answers])
    normalize = layers.LayerNormalization(epsilon=1e-5)
    attended = normalize(attended)

    expand = layers.Dense(4 * width, activation="relu")
    hidden = expand(attended)
    reduce = layers.Dense(width)
    hidden = reduce(hidden)
    add = layers.Add()
    hidden = add([attended, hidden])
    normalize = layers.LayerNormalization(epsilon=1e-5, name=f"stage_{index}")
    return normalize(hidden)
