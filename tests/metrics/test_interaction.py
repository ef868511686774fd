"""Interactions of factors against algebra and slow definitions."""

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose
from pytest import approx

from tests.metrics.planted import make_noise
from tfcomp.metrics import interaction

POINTS = np.random.default_rng(3).uniform(0.3, 1.2, (6, 2))
THREE = make_noise(7, 3, seed=4)
RADIUS = 2.5


def measure(
    stage_fn: Callable,
    points: np.ndarray = POINTS,
    ranges: tuple | None = None,
) -> interaction.Interaction:
    """Measures a stage; factors range over 1 each by default."""
    factors = tf.constant(points, tf.float32)
    products = interaction.compute_jet_products(
        lambda f: {"stage": stage_fn(f)},
        factors,
    )
    if ranges is None:
        ranges = (1,) * points.shape[1]
    return interaction.Interaction(products["stage"].numpy(), ranges)


def stack(*columns: tf.Tensor) -> tf.Tensor:
    return tf.stack(columns, axis=1)


def sphere(f: tf.Tensor) -> tf.Tensor:
    u, v = tf.unstack(f, axis=1)
    x = tf.sin(u) * tf.cos(v)
    y = tf.sin(u) * tf.sin(v)
    return RADIUS * stack(x, y, tf.cos(u))


def saddle(f: tf.Tensor) -> tf.Tensor:
    x, y = tf.unstack(f, axis=1)
    return stack(x, y, x * y)


def cylinder(f: tf.Tensor) -> tf.Tensor:
    x, y = tf.unstack(f, axis=1)
    return stack(tf.cos(x), tf.sin(x), y)


SQUARES = np.sum(POINTS**2, axis=1)
SADDLE = -1 / (1 + SQUARES) ** 2


@pytest.mark.parametrize(
    "surface, curvature",
    [
        (sphere, RADIUS**-2),
        (saddle, SADDLE),
        (cylinder, 0),
    ],
)
def test_curvature_of_known_surfaces(surface, curvature):
    ranges = (3, 0.5)

    def stand_still(f: tf.Tensor) -> tf.Tensor:
        """The surface, where x moves nothing up to 0.7."""
        return surface(tf.maximum(f, [0.7, 0.0]))

    jet = measure(surface, ranges=ranges)
    still = measure(stand_still, ranges=ranges)

    estimate, area = jet.curvature()
    expected = np.broadcast_to(curvature, estimate.shape)
    assert_allclose(estimate, expected, atol=1e-4)
    # Where a factor moves nothing, nothing is added to the integral.
    moves = POINTS[:, 0] > 0.7
    total = np.mean(estimate * area * moves)
    summary = still.summarize()
    assert summary["total_curvature"] == approx(total, abs=1e-4)


@pytest.mark.parametrize(
    "line",
    [
        lambda f: f @ tf.ones((2, 3)),
        lambda f: f * [1.0, 0.0],
    ],
)
def test_a_line_has_no_curvature(line):
    jet = measure(line)

    assert np.isnan(jet.curvature()).all()
    summary = jet.summarize()
    assert summary["gaussian_curvature"] is None
    assert summary["mixed_share"] == 0  # linear


def test_one_factor_has_no_interaction():
    points = POINTS[:, :1]
    summary = measure(tf.sin, points).summarize()
    assert set(summary.values()) == {0}


def make_mlp(units: int = 30) -> keras.Model:
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(16, "tanh"),
            keras.layers.Dense(units, "tanh"),
        ]
    )


def test_products_equal_the_chain_rule():
    """Of y = tanh(V tanh(W f + b) + c), by its written-out derivatives."""
    model = make_mlp(5)
    jet = measure(model, THREE)

    weights, bias, out_weights, out_bias = model.get_weights()
    hidden = np.tanh(THREE @ weights + bias)  # [n, k]
    outputs = np.tanh(hidden @ out_weights + out_bias)  # [n, units]
    slope = 1 - hidden**2
    bend = -2 * hidden * slope
    inner = np.einsum("nk,ik,ku->nui", slope, weights, out_weights)
    pairs = np.array(interaction.list_pairs(3))
    rows, columns = pairs.T
    products = weights[rows] * weights[columns]  # [pairs, k]
    inner_bend = np.einsum("nk,pk,ku->nup", bend, products, out_weights)

    out_slope = 1 - outputs[..., None] ** 2
    first = out_slope * inner
    squares = inner[..., rows] * inner[..., columns]
    out_bend = -2 * outputs[..., None] * out_slope
    second = out_bend * squares + out_slope * inner_bend

    for products, left, right in (
        (jet.first, first, first),
        (jet.cross, first, second),
        (jet.second, second, second),
        (jet.absolute, abs(first), abs(first)),
    ):
        expected = np.einsum("nui,nuj->nij", left, right)
        assert_allclose(products, expected, rtol=1e-4, atol=1e-5)


def additive(f: tf.Tensor) -> tf.Tensor:
    model = make_mlp()
    of_x = model(f * [1.0, 0.0, 0.0])
    of_z = model(f * [0.0, 0.0, 1.0])
    return of_x + of_z


# One mixed 1 in each of two units, and their slopes.
SLOPES = np.sum(THREE**2 @ [2, 1, 1])


def multiply(f: tf.Tensor) -> tf.Tensor:
    return f[:, :1] * f[:, 1:]


@pytest.mark.parametrize(
    "stage_fn, expected",
    [
        (additive, 0),
        (multiply, 14 / (14 + SLOPES)),
    ],
)
def test_mixed_share(stage_fn, expected):
    share = measure(stage_fn, THREE).mixed_share()
    assert share == approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "of_x, of_y, contrast, relative",
    [
        ([1, 0], [0, 2], 0, 0),  # slots: no unit answers to both
        ([1, 3], [-2, 0], 2, 0.1**0.5),
        ([1], [1], 1, 1),
        ([1, 1], [-1, 1], 2, 1),  # turned: it depends on the axes
        ([1], [0], 0, 1),  # dead in one factor: the worst
    ],
)
def test_contrast(of_x, of_y, contrast, relative):
    weights = np.float32([of_x, of_y])

    jet = measure(lambda f: f @ weights)

    absolute, share = jet.contrast()
    assert_allclose(absolute, contrast, atol=1e-6)
    assert_allclose(share, relative, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_diverged_stage_has_no_numbers(bad):
    jet = measure(lambda f: bad * f**2)
    summary = jet.summarize()
    assert set(summary.values()) == {None}
