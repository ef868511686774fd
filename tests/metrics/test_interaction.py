"""Interactions of factors against algebra and slow definitions."""

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from tfcomp.metrics import interaction

POINTS = np.random.default_rng(3).uniform(0.3, 1.2, size=(6, 2))
RADIUS = 2.5


def measure(
    stage_fn: Callable,
    points: np.ndarray = POINTS,
    ranges: tuple = (1, 1),
) -> interaction.Interaction:
    products = interaction.compute_jet_products(
        lambda f: {"h": stage_fn(f)},
        tf.constant(points, tf.float32),
    )
    return interaction.Interaction(products["h"].numpy(), ranges)


def stack(*columns: tf.Tensor) -> tf.Tensor:
    return tf.stack(columns, axis=1)


def sphere(f: tf.Tensor) -> tf.Tensor:
    u, v = tf.unstack(f, axis=1)
    x = tf.sin(u) * tf.cos(v)
    y = tf.sin(u) * tf.sin(v)
    return RADIUS * stack(x, y, tf.cos(u))


def bent(f: tf.Tensor) -> tf.Tensor:
    """The sphere in skew coordinates, turned into 40 units."""
    u, v = tf.unstack(f, axis=1)
    random = np.random.default_rng(0).normal(size=(40, 3))
    turn, _ = np.linalg.qr(random)
    skew = stack(u + 0.2 * v**2, v + 0.3 * u)
    return sphere(skew) @ tf.constant(turn.T, tf.float32)


def saddle(f: tf.Tensor) -> tf.Tensor:
    return stack(f[:, 0], f[:, 1], f[:, 0] * f[:, 1])


def cylinder(f: tf.Tensor) -> tf.Tensor:
    return stack(tf.cos(f[:, 0]), tf.sin(f[:, 0]), f[:, 1])


SADDLE = -((1 + (POINTS**2).sum(axis=1)) ** -2)


@pytest.mark.parametrize("ranges", [(1, 1), (3, 0.5)])
@pytest.mark.parametrize(
    ("surface", "curvature"),
    [
        (sphere, RADIUS**-2),
        (bent, RADIUS**-2),
        (saddle, SADDLE),
        (cylinder, 0),
    ],
)
def test_curvature_of_known_surfaces(surface, curvature, ranges) -> None:
    jet = measure(
        surface,
        ranges=ranges,
    )
    found, area = jet.curvature()
    assert_allclose(found, curvature + 0 * found, atol=1e-4)
    # Where a factor moves nothing, nothing is added to the integral.
    half = measure(
        lambda f: surface(tf.maximum(f, [0.7, 0.0])),
        ranges=ranges,
    )
    total = np.mean(found * area * (POINTS[:, 0] > 0.7))
    total_curvature = half.summarize()["total_curvature"]
    assert total_curvature == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize(
    "line",
    [lambda f: f @ tf.ones((2, 3)), lambda f: f * [1.0, 0.0]],
)
def test_a_line_has_no_curvature(line) -> None:
    jet = measure(line)
    assert np.isnan(jet.curvature()).all()
    summary = jet.summarize()
    assert summary["gaussian_curvature"] is None
    assert summary["mixed_share"] == 0  # linear
    one = measure(tf.sin, POINTS[:, :1], (1,)).summarize()
    assert set(one.values()) == {0}


def make_mlp(units: int = 30) -> keras.Model:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(n, "tanh") for n in (16, units)]
    return keras.Sequential([keras.Input((3,)), *layers])


def test_products_equal_the_slow_definition(rng) -> None:
    model = make_mlp(5)
    points = rng.normal(size=(4, 3))
    factors = tf.constant(points, tf.float32)
    with tf.GradientTape() as outer:
        outer.watch(factors)
        with tf.GradientTape() as inner:
            inner.watch(factors)
            h = model(factors)
        slopes = inner.batch_jacobian(h, factors)  # [n, units, F]
    bends = outer.batch_jacobian(slopes, factors).numpy()
    first = slopes.numpy()
    pairs = [bends[..., i, j] for i, j in interaction.list_pairs(3)]
    second = np.stack(pairs, axis=-1)  # [n, units, pairs]

    jet = measure(model, points, (1, 1, 1))
    for found, left, right in (
        (jet.first, first, first),
        (jet.cross, first, second),
        (jet.second, second, second),
        (jet.absolute, abs(first), abs(first)),
    ):
        expected = np.einsum("nui,nuj->nij", left, right)
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def additive(f: tf.Tensor) -> tf.Tensor:
    return make_mlp()(f * [1.0, 0.0, 0.0]) + make_mlp()(f * [0.0, 0.0, 1.0])


def kinked(f: tf.Tensor) -> tf.Tensor:
    """All of its interactions are in the kinks."""
    weights = np.random.default_rng(1).normal(size=(6, 20))
    code = tf.concat([tf.sin(f), tf.cos(f)], axis=1)
    return tf.nn.relu(code @ tf.constant(weights, tf.float32))


@pytest.mark.parametrize("stage_fn", [additive, kinked])
def test_sums_have_no_mixed_share(stage_fn, rng) -> None:
    jet = measure(stage_fn, rng.normal(size=(7, 3)), (1, 1, 1))
    assert jet.mixed_share() == pytest.approx(0, abs=1e-6)


def test_mixed_share_of_products(rng) -> None:
    """One mixed 1 in each of two units, and their slopes."""
    points = rng.normal(size=(7, 3))
    jet = measure(lambda f: f[:, :1] * f[:, 1:], points, (1, 1, 1))
    slopes = np.sum(points**2 * [2, 1, 1])
    expected = 2 * len(points) / (2 * len(points) + slopes)
    assert jet.mixed_share() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("weights", "contrast", "relative"),
    [
        ([[1, 0], [0, 2]], 0, 0),  # slots: no unit answers to both
        ([[1, -2], [3, 0]], 2, 0.1**0.5),
        ([[1, 1]], 1, 1),
        ([[1, -1], [1, 1]], 2, 1),  # turned: it depends on the axes
        ([[1, 0]], 0, 1),  # dead in one factor: the worst
    ],
)
def test_contrast(weights, contrast, relative) -> None:
    matrix = tf.constant(weights, tf.float32)
    jet = measure(lambda f: f @ tf.transpose(matrix))
    found, share = jet.contrast()
    assert_allclose(found, contrast, atol=1e-6)
    assert_allclose(share, relative, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_diverged_stage_has_no_numbers(bad) -> None:
    summary = measure(lambda f: bad * f**2).summarize()
    assert set(summary.values()) == {None}
