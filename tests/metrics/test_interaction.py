"""Interactions of factors against algebra and slow definitions."""

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.metrics import interaction

POINTS = np.random.default_rng(3).uniform(0.3, 1.2, size=(6, 2))
RADIUS = 2.5


def measure(
    stage_fn: Callable, points: np.ndarray = POINTS, ranges: tuple = (1, 1)
) -> interaction.Interaction:
    found = interaction.compute_jet_products(
        lambda f: {"h": stage_fn(f)}, tf.constant(points, tf.float32)
    )
    return interaction.Interaction(found["h"].numpy(), ranges)


def stack(*columns: tf.Tensor) -> tf.Tensor:
    return tf.stack(columns, axis=1)


def sphere(f: tf.Tensor) -> tf.Tensor:
    u, v = f[:, 0], f[:, 1]
    return RADIUS * stack(
        tf.sin(u) * tf.cos(v), tf.sin(u) * tf.sin(v), tf.cos(u)
    )


def bent(f: tf.Tensor) -> tf.Tensor:
    """The sphere in skew coordinates, turned into 40 units."""
    f = stack(f[:, 0] + 0.2 * f[:, 1] ** 2, f[:, 1] + 0.3 * f[:, 0])
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 3)))
    return sphere(f) @ tf.constant(turn.T, tf.float32)


def saddle(f: tf.Tensor) -> tf.Tensor:
    return stack(f[:, 0], f[:, 1], f[:, 0] * f[:, 1])


SURFACES = {
    "sphere": (sphere, lambda p: np.full(len(p), RADIUS**-2)),
    "bent": (bent, lambda p: np.full(len(p), RADIUS**-2)),
    "saddle": (saddle, lambda p: -((1 + (p**2).sum(axis=1)) ** -2)),
    "cylinder": (
        lambda f: stack(tf.cos(f[:, 0]), tf.sin(f[:, 0]), f[:, 1]),
        lambda p: np.zeros(len(p)),
    ),
}


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("ranges", [(1, 1), (3, 0.5)])
def test_curvature_of_known_surfaces(name: str, ranges: tuple) -> None:
    surface, expected = SURFACES[name]
    jet = measure(surface, ranges=ranges)
    np.testing.assert_allclose(jet.curvature()[0], expected(POINTS), atol=1e-4)
    # Where a factor moves nothing, nothing is added to the integral.
    half = measure(lambda f: surface(tf.maximum(f, [0.7, 0.0])), ranges=ranges)
    parts = np.prod(jet.curvature(), axis=0) * (POINTS[:, 0] > 0.7)
    whole = pytest.approx(parts.mean(), abs=1e-4)
    assert half.summarize()["total_curvature"] == whole


@pytest.mark.parametrize(
    "line", [lambda f: f @ tf.ones((2, 3)), lambda f: f * [1.0, 0.0]]
)
def test_a_line_has_no_curvature(line: Callable) -> None:
    jet = measure(line)
    assert np.isnan(jet.curvature()).all()
    found = jet.summarize()
    assert found["gaussian_curvature"] is None
    assert found["mixed_share"] == 0  # linear
    one = measure(tf.sin, POINTS[:, :1], (1,)).summarize()
    assert one == {"mixed_share": 0, "contrast": 0, "relative_contrast": 0}


def make_mlp(units: int = 30) -> keras.Model:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(n, "tanh") for n in (16, units)]
    return keras.Sequential([keras.Input((3,)), *layers])


def test_products_equal_the_slow_definition() -> None:
    model = make_mlp(5)
    points = np.random.default_rng(4).normal(size=(4, 3))
    factors = tf.constant(points, tf.float32)
    with tf.GradientTape() as outer:
        outer.watch(factors)
        with tf.GradientTape() as inner:
            inner.watch(factors)
            h = model(factors)
        first = inner.batch_jacobian(h, factors)  # [n, units, F]
    second = outer.batch_jacobian(first, factors).numpy()
    first = first.numpy()
    upper = np.stack([second[..., i, j] for i, j in interaction.list_pairs(3)])
    upper = np.moveaxis(upper, 0, -1)  # [n, units, pairs]
    jet = measure(model, points, (1, 1, 1))
    for found, left, right in (
        (jet.first, first, first),
        (jet.cross, first, upper),
        (jet.second, upper, upper),
        (jet.absolute, abs(first), abs(first)),
    ):
        expected = np.einsum("nui,nuj->nij", left, right)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def additive(f: tf.Tensor) -> tf.Tensor:
    models = make_mlp(), make_mlp()
    parts = [tf.one_hot(i, 3) * f for i in (0, 2)]
    return sum(m(p) for m, p in zip(models, parts, strict=True))


def kinked(f: tf.Tensor) -> tf.Tensor:
    weights = np.random.default_rng(1).normal(size=(6, 20))
    code = tf.concat([tf.sin(f), tf.cos(f)], axis=1)
    return tf.nn.relu(code @ tf.constant(weights, tf.float32))


@pytest.mark.parametrize(
    ("stage_fn", "expected"),
    [
        (additive, 0),
        (kinked, 0),  # all of its interactions are in the kinks
        # One mixed 1 in each of two units, and their slopes.
        (lambda f: f[:, :1] * f[:, 1:], lambda x, y, z: 2 * x**2 + y**2 + z**2),
    ],
)
def test_mixed_share(stage_fn: Callable, expected: float | Callable) -> None:
    points = np.random.default_rng(5).normal(size=(7, 3))
    share = measure(stage_fn, points, (1, 1, 1)).mixed_share()
    if expected:
        slopes = expected(*points.T).sum()
        expected = 2 * len(points) / (2 * len(points) + slopes)
    assert share == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("stage_fn", "contrast", "relative"),
    [
        # Slots: no unit answers to both.
        (lambda f: tf.concat([tf.sin(f[:, :1]), f[:, 1:] ** 2], 1), 0, 0),
        (lambda f: stack(f[:, 0] - 2 * f[:, 1], 3 * f[:, 0]), 2, 0.1**0.5),
        (lambda f: tf.reduce_sum(f, 1), 1, 1),
        # Turned by 45 degrees: it depends on the axes.
        (lambda f: stack(f[:, 0] - f[:, 1], f[:, 0] + f[:, 1]), 2, 1),
        (lambda f: f[:, 0], 0, 1),  # dead in one factor: the worst
    ],
)
def test_contrast(stage_fn: Callable, contrast: float, relative: float) -> None:
    found = measure(stage_fn).contrast()
    np.testing.assert_allclose(found[0], contrast, atol=1e-6)
    np.testing.assert_allclose(found[1], relative, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_diverged_stage_has_no_numbers(bad: float) -> None:
    jet = measure(lambda f: bad * f**2)
    assert set(jet.summarize().values()) == {None}
