"""Transformer: every pixel, or patch of pixels, is a token that sees all."""

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.model_rules import HEADS
from tfcomp.models.model_sizes import choose_patch
from tfcomp.models.pixels import PixelSum


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
