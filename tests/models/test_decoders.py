"""The decoders of the literature against slow definitions of theirs."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.own_factors import TILES
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models import MODELS, pixels
from tfcomp.models.decoders.convolutional import list_doublings
from tfcomp.models.decoders.pixelwise import choose_patch
from tfcomp.models.registry import check_config
from tfcomp.models.stages import list_stages, make_stage_model

# Weights at 28 x 28 with a bump code, width 64 and depth 4, and of colored
# images of 12 x 16 with four factors, width 8 and depth 2.
WEIGHTS = {
    "burgess": (179_521, 2_295),
    "kim": (376_673, 4_843),
    "broadcast": (152_065, 1_467),
    "coordinate": (20_357, 237),
    "transformer": (203_649, 1_835),
    "film": (176_961, 1_451),
    "attention": (36_801, 515),
    "additive": (130_592, 21_112),
    "product": (130_592, 21_112),
    "low_rank_product": (130_592 + 31 * 101_920, 21_112 + 3 * 20_736),
    "occlusion": (181_552, 26_296),
    "slots": (232_512, 28_024),
}
EACH = pytest.mark.parametrize("name", WEIGHTS)
TILED = "--dataset=tiles --region=none --encoding=circle --rank=4".split()
SMALL = [*TILED, "--width=8", "--depth=2"]
POINTS = TILES.grid()[::50]


def make(name: str, *flags: str) -> keras.Model:
    keras.utils.set_random_seed(0)
    config = parse_config([*flags, f"--model={name}"])
    return MODELS.get(name).load()(config, check_config(config))


@EACH
def test_any_image_any_factors_and_a_file(name, tmp_path) -> None:
    assert make(name, *SMALL).count_params() == WEIGHTS[name][1]
    model = make(name)
    assert model.count_params() == WEIGHTS[name][0]
    stages = list_stages(model)
    assert stages[0] == "code" and stages[-1] == "image"
    assert stages[1:-1] == [f"stage_{i}" for i in range(len(stages) - 2)]
    model = make(name, *SMALL, "--dataset=odd")  # 12 x 15 pixels
    stages = make_stage_model(model)(POINTS)
    image = stages["image"]
    assert image.shape == (len(POINTS), 12, 15, 3)
    assert image.dtype == tf.float32
    assert np.isfinite(image).all() and np.ptp(image, axis=0).max() > 1e-5
    if "product" in name:
        assert np.mean(image) == pytest.approx(1.0, abs=0.3)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert list_stages(loaded) == list(stages)
    np.testing.assert_array_equal(loaded(POINTS), image)


@pytest.mark.parametrize(
    ("rows", "columns", "start", "count"),
    [(64, 64, [4, 4], 4), (33, 100, [3, 7], 4), (1, 9, [1, 5], 1)],
)
def test_doublings_reach_the_image(rows, columns, start, count) -> None:
    class Data:
        image_shape = (rows, columns, 3)

    for name, first in (("burgess", 32), ("kim", 64)):
        config = parse_config([f"--model={name}"])
        found, filters = list_doublings(config, Data)
        assert found == start and len(filters) == count + 1
        assert filters[0] == first and filters[-1] == 3
    assert start[0] * 2**count >= rows and start[1] * 2**count >= columns


# Pixels


def test_patches_of_pixels_are_tokens() -> None:
    flags = ["--grid_size=12", "--encoding=ramp", "--width=8", "--depth=1"]
    flags.append("--region=none")
    model = make("transformer", *flags, "--patch_size=3")
    assert model.get_layer("stage_1").output.shape[1:] == (16, 8)
    # Units of the last layer are the pixels of a patch, row by row.
    kernel, bias = model.get_layer("pixels").get_weights()
    model.get_layer("pixels").set_weights([0 * kernel, np.arange(9.0)])
    image = model(np.ones((1, 2), np.float32))[0, :, :, 0].numpy()
    np.testing.assert_array_equal(
        image, np.tile(np.arange(9).reshape(3, 3), (4, 4))
    )


@pytest.mark.parametrize(
    ("side", "patch"), [(12, 1), (28, 1), (32, 2), (64, 4), (60, 3)]
)
def test_a_patch_leaves_few_tokens(side, patch) -> None:
    flags = [f"--grid_size={side}", "--region=none", "--model=transformer"]
    config = parse_config(flags)
    assert choose_patch(config, make_dataset(config)) == patch


@pytest.mark.parametrize("positions", ["coordinates", "sinusoids"])
def test_pixel_dense_is_a_dense_layer_of_every_pixel(positions, rng) -> None:
    z = rng.normal(size=(2, 4)).astype(np.float32)
    layer = pixels.PixelDense((3, 5), 6, positions)
    layer(z)
    layer.bias.assign(rng.normal(size=6))
    tiled = np.broadcast_to(z[:, None, None], (2, 3, 5, 4))
    if positions == "coordinates":
        table = np.broadcast_to(pixels.make_coordinates(3, 5), (2, 3, 5, 2))
        inputs = np.concatenate([tiled, table], axis=-1)
    else:
        inputs = tiled + pixels.make_sinusoids(3, 5, 4)
        np.testing.assert_array_equal(pixels.PixelSum((3, 5))(z), inputs)
    expected = inputs @ layer.kernel.numpy() + layer.bias.numpy()
    np.testing.assert_allclose(layer(z), expected, atol=1e-5)


def test_film_is_its_equation(rng) -> None:
    model = make("film", *SMALL)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    stages = make_stage_model(model)(POINTS)
    modulation = model.get_layer("film_0")(stages["code"])
    gamma, beta = np.split(np.asarray(modulation)[:, None, None], 2, axis=-1)
    places = pixels.make_sinusoids(12, 16, 8)[None]
    convolved = np.asarray(model.get_layer("convolution_0")(places))
    expected = np.maximum((1 + gamma) * convolved + beta, 0)
    np.testing.assert_allclose(stages["stage_0"], expected, atol=1e-4)


def test_cross_attention_is_its_equation(rng) -> None:
    layer, heads, width = pixels.CrossAttention((3, 4), 0.5), 4, 8
    tokens = rng.normal(size=(2, 3, width)).astype(np.float32)
    layer(tokens)
    weights = [w.numpy().astype(float) for w in layer.weights]
    query, key, value, output = weights
    table = pixels.make_sinusoids(3, 4, width)
    expected = np.zeros((2, 3, 4, width)) + table
    pairs = []
    for n, r, c in np.ndindex(2, 3, 4):
        attention = []
        for h in range(heads):
            scores = (tokens[n] @ key[h]) @ (table[r, c] @ query[h])
            shares = np.exp(scores / np.sqrt(width / heads))
            attention.append(shares / shares.sum())
            drawn = attention[-1] @ (tokens[n] @ value[h])
            expected[n, r, c] += output[h] @ drawn
        mean = np.mean(attention, axis=0)
        pairs.append(sum(a * b for a, b in itertools.combinations(mean, 2)))
    np.testing.assert_allclose(layer(tokens), expected, atol=1e-5)
    penalty = 0.5 * np.mean(pairs)
    assert float(layer.losses[0]) == pytest.approx(penalty, 1e-4)
    half = pixels.CrossAttention((3, 4), 0.5, dtype="mixed_bfloat16")
    half.build(tokens.shape)
    half.set_weights(layer.get_weights())
    half(tokens)
    assert half.losses[0].dtype == "float32"  # to which `fit` adds it
    assert float(half.losses[0]) == pytest.approx(penalty, 0.02)
    alone = np.zeros((1, 2, 2, heads, 3), np.float32)
    alone[..., 1] = 1.0
    assert float(pixels.measure_interaction(alone)) == 0.0


# Composition


def compose_slowly(method: str, x: list, m: list) -> float:
    """One pixel of one channel; of a product, x_kr [K, R]."""
    if method == "additive":
        return sum(x)
    if "product" in method:
        return np.sum(np.prod(x, axis=0))
    if method == "slots":
        return np.dot(np.exp(m), x) / np.exp(m).sum()
    s = [1 / (1 + np.exp(-value)) for value in m]
    return s[0] * x[0] + (1 - s[0]) * (s[1] * x[1] + (1 - s[1]) * x[2])


@pytest.mark.parametrize(
    ("method", "num_masks", "rank"),
    [
        ("additive", 0, 1),
        ("product", 0, 1),
        ("low_rank_product", 0, 3),
        ("occlusion", 2, 1),
        ("slots", 3, 1),
    ],
)
def test_compositions(method, num_masks, rank, rng) -> None:
    depths = [*[2 * rank] * 3, *[1] * num_masks]
    drawn = [rng.normal(size=(2, 3, 4, d)).astype("float32") for d in depths]
    compose = pixels.Composition(method, channels=2, groups=3)
    image = np.asarray(compose(drawn))
    assert image.shape == (2, 3, 4, 2)
    for n, r, c, channel in np.ndindex(image.shape):
        x = [part[n, r, c, channel::2] for part in drawn[:3]]
        x = x if "product" in method else [value[0] for value in x]
        m = [mask[n, r, c, 0] for mask in drawn[3:]]
        expected = compose_slowly(method, x, m)
        assert image[n, r, c, channel] == pytest.approx(expected, 1e-4, 1e-6)


def test_additive_has_no_interactions_between_groups() -> None:
    """Neither as differences nor as derivatives, but within a group."""
    model = make("additive", *SMALL, "--groups=x+phase,color+size")
    corners = [
        (x, size, phase, 2.0)
        for (x, phase), size in itertools.product(((3, 0), (5, 9)), (1.5, 4))
    ]
    image = np.asarray(model(np.float32(corners)), float)
    mixed = image[0] - image[1] - image[2] + image[3]
    assert np.abs(mixed).max() < 1e-6
    assert np.abs(image[0] - image[3]).max() > 1e-3
    point = tf.constant([[3.3, 1.7, 100.0, 1.0]])
    with tf.GradientTape() as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            image = model(point)
        slopes = inner.gradient(image, point)
    hessian = outer.jacobian(slopes, point)[0, :, 0].numpy()
    assert hessian[2, 2] != 0.0  # the angle is coded by cos and sin
    np.testing.assert_array_equal(hessian[1, [0, 2]], 0.0)
    np.testing.assert_array_equal(hessian[[0, 2], 1], 0.0)
