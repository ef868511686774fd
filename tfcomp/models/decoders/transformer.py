"""A transformer over the pixels, or patches of them."""

import math

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model, Tensor
from tfcomp.models.model_rules import HEADS, check_sinusoids

TOKENS = 28 * 28  # at most, if the patch is free


def choose_patch(config: RunConfig, dataset: Dataset) -> int:
    """Returns the rows and columns of pixels of a token, a divisor."""
    rows, columns, _ = dataset.image_shape
    side, area = math.gcd(rows, columns), rows * columns
    asked = config.model.patch_size
    divisors = [d for d in range(1, side + 1) if side % d == 0]
    if asked and asked not in divisors:
        rule = f"must be 0, or one of {', '.join(map(str, divisors))}"
        raise ConfigError("patch_size", rule, asked)
    few = (d for d in divisors if area // d**2 <= TOKENS)
    return asked or next(few, side)


def check_transformer(config: RunConfig, dataset: Dataset) -> None:
    """Checks sinusoids, and that patches fill the image."""
    check_sinusoids(config, dataset)
    choose_patch(config, dataset)


@MODELS.register("transformer", check=check_transformer)
def build_transformer(config: RunConfig, dataset: Dataset) -> Model:
    """`--depth` encoder layers over the tokens W code + w + PE(p).

        h <- N(h + attention(h)),  h <- N(h + F relu(E h)),  x_p = V h_p

    for every pixel p, or every patch of `--patch_size` rows and columns, with N
    the normalization of a token (Vaswani et al. 2017). The published code of
    the paper has 2,048 units between E and F, where there are 4 times `--width`
    here, and dropout. Time and memory grow with the square of the tokens.
    """
    import keras
    from keras import layers

    from tfcomp.models import pixels
    from tfcomp.models.encodings.base import make_code

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


def _add_layer(tokens: Tensor, index: int) -> Tensor:
    """An encoder layer, normalized after its sums as published."""
    from keras import layers

    width = tokens.shape[-1]
    attend = layers.MultiHeadAttention(
        HEADS, width // HEADS, name=f"attention_{index}"
    )
    seen = layers.Add()([tokens, attend(tokens, tokens)])
    seen = layers.LayerNormalization(epsilon=1e-5)(seen)
    fed = layers.Dense(4 * width, activation="relu")(seen)
    fed = layers.Add()([seen, layers.Dense(width)(fed)])
    return layers.LayerNormalization(epsilon=1e-5, name=f"stage_{index}")(fed)
