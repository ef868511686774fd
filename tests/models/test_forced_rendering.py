"""Profiles along the axes of an image, and penalties of matrices."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy import ndarray as Array
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx

from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.models.decoders.forced_rendering import parse_axes
from tfcomp.models.forced_rendering import (
    AxisEmbedding,
    EntropyRegularizer,
    VarianceRegularizer,
)
from tfcomp.models.registry import AXES

SIZE = (5, 4, 6)  # values, rows, columns


def make_layer(**options) -> AxisEmbedding:
    layer = AxisEmbedding(SIZE[0], SIZE[1:], **options)
    layer.build((None,))
    return layer


def scale(layer: AxisEmbedding, **norms: float):
    """Sets the norms of the profiles along the axes, 1 by default."""
    for weight in layer.trainable_weights:
        unit = weight / np.linalg.norm(weight)
        weight.assign(unit * norms.get(weight.name, 1.0))


def render_slowly(layer: AxisEmbedding) -> Array:
    profiles = layer.profiles()
    _, num_rows, num_columns = SIZE
    matrices = np.zeros(SIZE)
    for axis, is_kept in zip(layer.axes, layer.kept.numpy(), strict=True):
        if not is_kept:
            continue
        for i, row, column in np.ndindex(SIZE):
            if axis == "rows":
                value = profiles[axis][i, row] / math.sqrt(num_columns)
            else:
                value = profiles[axis][i, column] / math.sqrt(num_rows)
            matrices[i, row, column] += value
    return matrices


@pytest.mark.parametrize("axes", [AXES, ("columns",)])
@pytest.mark.parametrize("pruned", [False, True])
def test_matrices_equal_loop(axes, pruned):
    layer = make_layer(axes=axes)
    if pruned:
        scale(layer, rows=0.1)
        layer.prune(0.2)
    index = np.float32([3.2, 0, np.nan, -1, 5, 3])

    images = layer(index)

    matrices = render_slowly(layer)
    absent = np.zeros((3, *SIZE[1:]))
    expected = [*matrices[[3, 0]], *absent, matrices[3]]
    assert_allclose(layer.matrices(), matrices, atol=1e-6)
    assert_allclose(images, expected, atol=1e-6)
    assert not np.any(images[2:5])
    assert layer.compute_output_shape((6,)) == images.shape


def get_penalty(layer: AxisEmbedding) -> tuple[float, list]:
    """Its value, and its gradient by every profile."""
    profiles = [weight.value for weight in layer.trainable_weights]
    with tf.GradientTape() as tape:
        total = sum(layer.losses, tf.constant(0.0))
    gradients = tape.gradient(total, profiles, unconnected_gradients="zero")
    return float(total), gradients


def test_penalty_is_the_sum_of_norms():
    layer = make_layer(group_weight=0.3)

    total, gradients = get_penalty(layer)

    expected = 0.0
    for gradient, weight in zip(
        gradients, layer.trainable_weights, strict=True
    ):
        norm = np.linalg.norm(weight)
        expected += 0.3 * norm
        assert_allclose(gradient, 0.3 * weight / norm, rtol=1e-4)
    assert total == approx(expected, rel=1e-5)


def test_pruning_ends_penalty_and_gradient():
    layer = make_layer(group_weight=0.3)
    scale(layer, columns=0.21)
    layer.prune(0.2)  # close axes stay
    assert layer.find_axis() is None

    scale(layer, columns=0.19)
    layer.prune(0.2)
    assert layer.find_axis() == "rows"
    assert layer.measure_ratio() == approx(1 / 0.19)

    total, gradients = get_penalty(layer)
    assert total == 0
    assert not np.any(gradients[0])
    assert not np.any(gradients[1])

    profiles = [weight.value for weight in layer.trainable_weights]
    with tf.GradientTape() as tape:
        energy = tf.reduce_sum(layer(np.arange(5)) ** 2)
    rows, columns = tape.gradient(energy, profiles)
    assert np.any(tf.convert_to_tensor(rows))
    assert not np.any(tf.convert_to_tensor(columns))

    scale(layer, rows=0.1)  # what is pruned stays so
    layer.prune(0.2)
    assert layer.find_axis() == "rows"


def test_saved_layer_is_pruned_still(tmp_path):
    index = keras.Input((1,))
    layer = make_layer(group_weight=0.3)
    model = keras.Model(index, layer(index))
    scale(layer, columns=0.1)
    layer.prune(0.2)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").layers[-1]

    assert loaded.get_config() == layer.get_config()
    assert loaded.find_axis() == "rows"
    assert_array_equal(loaded.matrices(), layer.matrices())


@pytest.mark.parametrize(
    "axes, x, angle",
    [
        ("find", AXES, ()),
        ("x:none,angle:rows", (), ("rows",)),
    ],
)
def test_factors_without_an_axis_get_matrices(axes, x, angle):
    space = FactorSpace(
        (
            Factor("x", 4, 0.0, 3.0),
            Factor("angle", 8, 0.0, 360.0, periodic=True),
            make_categories("digit", [0, 1]),
        )
    )
    expected = {
        "x": x,
        "angle": angle,
        "digit": (),
    }
    assert parse_axes(axes, space) == expected


# Penalties of low-rank matrices


def compute_entropy_slowly(coefficients: Array) -> Array:
    entropies = []
    for row in coefficients:
        shares = row**2 / np.sum(row**2)
        entropy = 0.0
        for share in shares[shares > 0]:
            entropy -= share * math.log(share)
        entropies.append(entropy)
    return np.array(entropies)


def compute_raw_variance(vectors: Array) -> Array:
    return np.var(vectors, axis=-1, ddof=1)


def compute_unit_variance(vectors: Array) -> Array:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return compute_raw_variance(vectors / norms)


def compute_gradient(penalty, weight: Array) -> Array:
    variable = tf.Variable(weight, dtype="float32")
    with tf.GradientTape() as tape:
        value = penalty(variable)
    return tape.gradient(value, variable).numpy()


@pytest.mark.parametrize(
    "kind, basis, define, shape",
    [
        (EntropyRegularizer, {}, compute_entropy_slowly, (3, 4)),
        (VarianceRegularizer, {}, compute_raw_variance, (3, 2, 5)),
        (
            VarianceRegularizer,
            {"basis": "unit"},
            compute_unit_variance,
            (3, 2, 5),
        ),
    ],
)
def test_penalty_and_gradient_equal_loops(kind, basis, define, shape, rng):
    values = rng.normal(0.5, 1.0, size=shape)

    for scaled in (values, 0.01 * values):
        expected = 0.3 * define(scaled)
        total = kind(0.3, reduction="sum", **basis)(scaled)
        mean = kind(0.3, reduction="mean", **basis)(scaled)
        assert_allclose(total, expected.sum(), rtol=1e-6)
        assert_allclose(mean, expected.mean(), rtol=1e-6)

    slopes = np.zeros(shape)
    for place in np.ndindex(shape):
        step = np.zeros(shape)
        step[place] = 1e-5
        difference = define(values + step) - define(values - step)
        slopes[place] = difference.sum() / 2e-5
    gradient = compute_gradient(kind(1.0, **basis), values)
    assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-5)


def test_entropy_of_rows_of_any_scale(rng):
    penalty = EntropyRegularizer(1.0)
    row = rng.standard_normal((1, 6), np.float32)
    expected = penalty(row)
    for factor in np.float32([1e-25, 1e25]):
        scaled = penalty(factor * row)
        assert_allclose(scaled, expected, rtol=1e-5)

    zero, sparse = compute_gradient(penalty, [[0, 0, 0], [0, 2, 1]])
    assert_array_equal(zero, 0.0)
    assert np.isfinite(sparse).all()
    assert sparse[0] == 0.0


@pytest.mark.parametrize(
    "basis, define",
    [
        ("raw", compute_raw_variance),
        ("unit", compute_unit_variance),
    ],
)
def test_variance_keeps_digits_near_constant_vectors(basis, define):
    penalty = VarianceRegularizer(1.0, basis)
    vectors = 1000.0 + np.arange(8.0)[None, None] / 64

    value = penalty(np.float32(vectors))

    assert_allclose(value, define(vectors).sum(), rtol=1e-4)
    # As of images with one row or one column.
    assert compute_gradient(penalty, [[[3.0]]]) == 0.0
