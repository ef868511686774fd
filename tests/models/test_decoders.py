"""The decoders of the literature against slow definitions of theirs."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy.special import expit, softmax

from tests.own_factors import TILES
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models import MODELS, pixels
from tfcomp.models.decoders.pixelwise import choose_patch
from tfcomp.models.registry import (
    list_stages,
    make_checked_dataset,
    make_stage_model,
)

# Weights for colored images of 12 x 15 with four factors.
WEIGHTS = {
    "burgess": 2_295,
    "kim": 4_843,
    "broadcast": 1_467,
    "coordinate": 237,
    "transformer": 1_835,
    "film": 1_451,
    "attention": 515,
    "additive": 9_936,
    "product": 9_936,
    "low_rank_product": 9_936 + 3 * 9_720,
    "occlusion": 24_676,
    "slots": 13_176,
}
# Those that draw an image of two pairs of factors; occlusion draws four.
PAIRED = ("additive", "product", "low_rank_product", "slots")
PAIRS = "--groups=x+phase,color+size"
SMALL = (
    "--dataset=tiles",
    "--region=none",
    "--encoding=circle",
    "--rank=4",
    "--width=8",
    "--depth=2",
)
POINTS = TILES.grid()[::50]


def make(name: str, *flags: str) -> keras.Model:
    keras.utils.set_random_seed(0)
    config = parse_config([*flags, f"--model={name}"])
    build = MODELS.get(name).load()
    return build(config, make_checked_dataset(config))


@pytest.mark.parametrize("name, count", WEIGHTS.items())
def test_any_image_any_factors_and_a_file(name, count, tmp_path):
    file = tmp_path / "model.keras"
    flags = [*SMALL, "--dataset=odd"]
    if name in PAIRED:
        flags.append(PAIRS)
    model = make(name, *flags)
    assert model.count_params() == count

    stages = make_stage_model(model)(POINTS)
    model.save(file)
    loaded = keras.models.load_model(file)

    code, *hidden, last = stages
    assert (code, last) == ("code", "image")
    assert hidden == [f"stage_{number}" for number in range(len(hidden))]
    image = stages["image"]
    assert image.shape == (len(POINTS), 12, 15, 3)
    assert image.dtype == tf.float32
    assert np.isfinite(image).all()
    assert np.ptp(image, axis=0).max() > 1e-5
    if "product" in name:
        assert np.mean(image) == approx(1.0, abs=0.3)
    assert list_stages(loaded) == list(stages)
    assert_array_equal(loaded(POINTS), image)


# Pixels


def test_patches_of_pixels_are_tokens():
    flags = (
        "--grid_size=12 --encoding=ramp --width=8 --depth=1 --region=none "
        "--patch_size=3"
    )
    model = make("transformer", *flags.split())
    tokens = model.get_layer("stage_1").output
    assert tokens.shape[1:] == (16, 8)

    # Units of the last layer are the pixels of a patch, row by row.
    layer = model.get_layer("pixels")
    kernel, _ = layer.get_weights()
    layer.set_weights([0 * kernel, np.arange(9.0)])
    (image,) = model(np.ones((1, 2), np.float32))

    patch = np.arange(9).reshape(3, 3)
    assert_array_equal(image[..., 0], np.tile(patch, (4, 4)))


@pytest.mark.parametrize(
    "side, patch",
    [
        (12, 1),
        (28, 1),
        (32, 2),
        (64, 4),
        (60, 3),
    ],
)
def test_a_patch_leaves_few_tokens(side, patch):
    flags = [f"--grid_size={side}", "--region=none"]
    config = parse_config(flags)
    assert choose_patch(config, make_dataset(config)) == patch


@pytest.fixture
def code(rng) -> Array:
    return np.float32(rng.normal(size=(2, 4)))


def check_pixel_dense(layer: Any, code: Array, inputs: Array):
    """Compares a layer with a dense layer of inputs [2, 3, 5, units]."""
    layer(code)
    layer.bias.assign(np.arange(6) / 10)

    pixels_of_code = layer(code)

    expected = inputs @ layer.kernel.numpy() + layer.bias.numpy()
    assert_allclose(pixels_of_code, expected, atol=1e-5)


def test_pixel_dense_joins_coordinates(code):
    inputs = np.zeros((2, 3, 5, 6))
    inputs[..., :4] = code[:, None, None]
    inputs[..., 4:] = pixels.make_coordinates(3, 5)

    layer = pixels.PixelDense((3, 5), 6, "coordinates")

    check_pixel_dense(layer, code, inputs)


def test_pixel_dense_adds_sinusoids(code):
    inputs = code[:, None, None] + pixels.make_sinusoids(3, 5, 4)

    layer = pixels.PixelDense((3, 5), 6, "sinusoids")
    sums = pixels.PixelSum((3, 5))(code)

    check_pixel_dense(layer, code, inputs)
    assert_array_equal(sums, inputs)


def test_film_is_its_equation(rng):
    model = make("film", *SMALL)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))

    stages = make_stage_model(model)(POINTS)

    film = model.get_layer("film_0")(stages["code"])
    gamma, beta = np.split(film[:, None, None], 2, axis=-1)
    places = pixels.make_sinusoids(12, 16, 8)
    convolve = model.get_layer("convolution_0")
    expected = (1 + gamma) * convolve(places[None]) + beta
    assert_allclose(stages["stage_0"], expected.numpy().clip(0), atol=1e-4)


HEADS = 4
WIDTH = 8


def attend_slowly(layer: keras.Layer, tokens: Array) -> tuple:
    """The output, and the mean overlap of two tokens' shares."""
    query, key, value, output = layer.get_weights()
    table = pixels.make_sinusoids(3, 4, WIDTH)
    outputs = np.zeros((2, 3, 4, WIDTH)) + table
    overlaps = []
    for n, row, column in np.ndindex(2, 3, 4):
        attention = []
        for head in range(HEADS):
            keys = tokens[n] @ key[head]
            values = tokens[n] @ value[head]
            scores = keys @ (table[row, column] @ query[head])
            shares = softmax(scores / np.sqrt(WIDTH / HEADS))
            outputs[n, row, column] += output[head] @ (shares @ values)
            attention.append(shares)
        first, second, third = np.mean(attention, axis=0)
        overlap = first * second + first * third + second * third
        overlaps.append(overlap)
    return outputs, np.mean(overlaps)


def test_cross_attention_is_its_equation(rng):
    layer = pixels.CrossAttention((3, 4), 0.5)
    tokens = np.float32(rng.normal(size=(2, 3, WIDTH)))

    outputs = layer(tokens)

    expected, overlap = attend_slowly(layer, tokens)
    (penalty,) = layer.losses
    assert_allclose(outputs, expected, atol=1e-5)
    assert float(penalty) == approx(0.5 * overlap, 1e-4)

    half = pixels.CrossAttention((3, 4), 0.5, dtype="mixed_bfloat16")
    half.build(tokens.shape)
    half.set_weights(layer.get_weights())
    half(tokens)
    (half_penalty,) = half.losses
    assert half_penalty.dtype == "float32"  # to which `fit` adds it
    assert float(half_penalty) == approx(float(penalty), 0.02)


# Composition


def compose_slowly(method: str, x: Array, masks: Array) -> float:
    """One pixel of one channel; x [3, R], where R is 1 but for products."""
    if "product" in method:
        return np.sum(np.prod(x, axis=0))

    x = x[:, 0]
    if method == "additive":
        return sum(x)
    if method == "slots":
        return softmax(masks) @ x

    front, middle = expit(masks)
    behind = middle * x[1] + (1 - middle) * x[2]
    return front * x[0] + (1 - front) * behind


@pytest.mark.parametrize(
    "method, num_masks, rank",
    [
        ("additive", 0, 1),
        ("product", 0, 1),
        ("low_rank_product", 0, 3),
        ("occlusion", 2, 1),
        ("slots", 3, 1),
    ],
)
def test_compositions(method, num_masks, rank, rng):
    parts = rng.standard_normal((3, 2, 3, 4, 2 * rank), np.float32)
    all_masks = rng.standard_normal((num_masks, 2, 3, 4, 1), np.float32)
    compose = pixels.Composition(
        method,
        channels=2,
        groups=3,
    )

    image = compose([*parts, *all_masks]).numpy()

    assert image.shape == (2, 3, 4, 2)
    for (n, row, column, channel), value in np.ndenumerate(image):
        x = parts[:, n, row, column, channel::2]
        masks = all_masks[:, n, row, column, 0]
        expected = compose_slowly(method, x, masks)
        assert value == approx(expected, 1e-4, 1e-6)


def test_groups_add_up():
    grouped = make("additive", *SMALL, PAIRS)
    points = np.float32(
        [
            [3, 1.5, 0, 2],
            [3, 4, 0, 2],
            [5, 1.5, 9, 2],
            [5, 4, 9, 2],
        ]
    )

    images = grouped(points)

    low, other, another, high = np.asarray(images, float)
    mixed = low + high - other - another
    assert np.abs(mixed).max() < 1e-6
    assert np.abs(low - high).max() > 1e-3
