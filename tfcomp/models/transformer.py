"""Transformer over pixels: every pixel is a token that sees all others."""

import keras

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.model_rules import HEADS
from tfcomp.models.pixels import PixelSum


def build_transformer(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` encoder layers over the tokens W code + w + PE(p).

        h <- N(h + attention(h)),  h <- N(h + F relu(E h)),  x_p = V h_p

    with N the normalization of a token (Vaswani et al. 2017). The published
    code of the paper has it with width 128, 2,048 units between E and F, where
    there are 4 times `--width` here, and dropout, which is left out. Of 28 x 28
    pixels, with a bump code, width 64 and depth 4 there are 203,649 weights.
    Time and memory grow with the square of the number of pixels.
    """
    (rows, columns, channels), width = dataset.image_shape, config.model.width
    factors, code = make_code(config, dataset)
    hidden = keras.layers.Dense(width, name="projection")(code)
    hidden = PixelSum((rows, columns), name="placed")(hidden)
    hidden = keras.layers.Reshape((rows * columns, width), name="stage_0")(
        hidden
    )
    for index in range(1, config.model.depth + 1):
        hidden = _add_layer(hidden, index)
    pixels = keras.layers.Dense(channels, dtype="float32", name="pixels")
    image = keras.layers.Reshape(
        dataset.image_shape, dtype="float32", name="image"
    )
    return keras.Model(factors, image(pixels(hidden)), name="transformer")


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
