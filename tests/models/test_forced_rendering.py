"""Profiles along the axes of an image, and penalties of matrices."""

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.models.decoders.forced_rendering import parse_axes
from tfcomp.models.forced_rendering import (
    AxisEmbedding,
    EntropyRegularizer,
    VarianceRegularizer,
)
from tfcomp.models.registry import AXES

NUM_VALUES, ROWS, COLUMNS = 5, 4, 6


def make_layer(**kwargs) -> AxisEmbedding:
    layer = AxisEmbedding(NUM_VALUES, (ROWS, COLUMNS), **kwargs)
    layer.build((None,))
    return layer


def scale(layer: AxisEmbedding, **factors: float) -> None:
    """Multiplies the profiles along an axis, and leaves all with norm 1."""
    for weight in layer.trainable_weights:
        unit = weight / np.linalg.norm(weight)
        weight.assign(unit * factors.get(weight.name, 1.0))


def draw_slowly(layer: AxisEmbedding) -> np.ndarray:
    kept = dict(zip(layer.axes, layer.kept.numpy(), strict=True))
    profiles = layer.profiles()
    matrices = np.zeros((NUM_VALUES, ROWS, COLUMNS))
    for i, row, column in np.ndindex(*matrices.shape):
        if kept.get("rows"):
            matrices[i, row, column] += profiles["rows"][i, row] / COLUMNS**0.5
        if kept.get("columns"):
            number = profiles["columns"][i, column]
            matrices[i, row, column] += number / ROWS**0.5
    return matrices


@pytest.mark.parametrize("axes", [AXES, ("columns",)])
@pytest.mark.parametrize("pruned", [False, True])
def test_matrices_equal_loop(axes, pruned) -> None:
    layer = make_layer(axes=axes)
    if pruned:
        scale(layer, rows=0.1)
        layer.prune(0.2)
    expected = draw_slowly(layer)
    np.testing.assert_allclose(layer.matrices(), expected, atol=1e-6)
    index = np.array([3.2, 0, np.nan, -1, 5, 3], np.float32)
    absent = np.zeros((3, ROWS, COLUMNS))
    drawn = [*expected[[3, 0]], *absent, expected[3]]
    np.testing.assert_allclose(layer(index), drawn, atol=1e-6)
    assert layer.compute_output_shape((6,)) == (6, ROWS, COLUMNS)


def get_penalty(layer: AxisEmbedding) -> tuple[float, list[np.ndarray]]:
    """Its value, and its gradient by every profile."""
    with tf.GradientTape() as tape:
        total = tf.add_n([*layer.losses, tf.constant(0.0)])
    weights = [weight.value for weight in layer.trainable_weights]
    none = tf.UnconnectedGradients.ZERO
    gradients = tape.gradient(total, weights, unconnected_gradients=none)
    return float(total), [g.numpy() for g in gradients]


def test_penalty_is_the_sum_of_norms() -> None:
    layer = make_layer(group_weight=0.3)
    total, gradients = get_penalty(layer)
    weights = [weight.numpy() for weight in layer.trainable_weights]
    norms = [sum(x**2 for x in weight.flat) ** 0.5 for weight in weights]
    assert total == pytest.approx(0.3 * sum(norms), rel=1e-5)
    for found, weight, norm in zip(gradients, weights, norms, strict=True):
        np.testing.assert_allclose(found, 0.3 * weight / norm, rtol=1e-4)


def test_pruning_ends_penalty_and_gradient() -> None:
    layer = make_layer(group_weight=0.3)
    scale(layer, columns=0.21)
    layer.prune(0.2)  # close axes stay
    assert layer.find_axis() is None
    scale(layer, columns=0.19)
    layer.prune(0.2)
    assert layer.find_axis() == "rows"
    assert layer.measure_ratio() == pytest.approx(1 / 0.19)
    total, gradients = get_penalty(layer)
    assert total == 0
    assert not any(g.any() for g in gradients)
    with tf.GradientTape() as tape:
        image = tf.reduce_sum(layer(np.arange(NUM_VALUES)) ** 2)
    rows, columns = tape.gradient(image, [w.value for w in layer.weights[:2]])
    assert np.any(tf.convert_to_tensor(rows))
    assert not np.any(tf.convert_to_tensor(columns))
    scale(layer, rows=0.1)  # what is pruned stays so
    layer.prune(0.2)
    assert layer.find_axis() == "rows"


def test_saved_layer_is_pruned_still(tmp_path) -> None:
    index = keras.Input((1,))
    layer = AxisEmbedding(NUM_VALUES, (ROWS, COLUMNS), group_weight=0.3)
    model = keras.Model(index, layer(index))
    scale(layer, columns=0.1)
    layer.prune(0.2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").layers[-1]
    assert loaded.get_config() == layer.get_config()
    assert loaded.find_axis() == "rows"
    np.testing.assert_array_equal(loaded.matrices(), layer.matrices())


def test_factors_without_an_axis_get_matrices() -> None:
    angle = Factor("angle", 8, 0.0, 360.0, periodic=True)
    x, digit = Factor("x", 4, 0.0, 3.0), make_categories("digit", [0, 1])
    space = FactorSpace((x, angle, digit))
    found = parse_axes("find", space)
    assert found == {"x": AXES, "angle": (), "digit": ()}
    found = parse_axes("x:none,angle:rows", space)
    assert found == {"x": (), "angle": ("rows",), "digit": ()}


# Penalties of low-rank matrices


def compute_entropy_slowly(coefficients: np.ndarray) -> np.ndarray:
    entropies = []
    for row in coefficients:
        total = sum(value**2 for value in row)
        p = [value**2 / total for value in row]
        entropies.append(-sum(q * math.log(q) for q in p if q > 0))
    return np.array(entropies)


def compute_variance_slowly(vectors: np.ndarray, basis: str) -> np.ndarray:
    variances = np.zeros(vectors.shape[:2])
    for i, r in np.ndindex(*variances.shape):
        vector = vectors[i, r].astype(np.float64)
        if basis == "unit":
            vector = vector / np.linalg.norm(vector)
        variances[i, r] = np.var(vector, ddof=1)
    return variances


def compute_gradient(penalty, weight: np.ndarray) -> np.ndarray:
    variable = tf.Variable(weight, dtype="float32")
    with tf.GradientTape() as tape:
        value = penalty(variable)
    return tape.gradient(value, variable).numpy()


def compute_differences(function, weight: np.ndarray) -> np.ndarray:
    """Central differences of a float64 NumPy function."""
    gradient = np.zeros(weight.shape)
    for index in np.ndindex(*weight.shape):
        step = np.zeros(weight.shape)
        step[index] = 1e-5
        difference = function(weight + step) - function(weight - step)
        gradient[index] = difference / 2e-5
    return gradient


EACH = pytest.mark.parametrize(
    ("kind", "compute_slowly", "shape"),
    [
        (EntropyRegularizer, compute_entropy_slowly, (3, 4)),
        *(
            (
                functools.partial(VarianceRegularizer, basis=basis),
                functools.partial(compute_variance_slowly, basis=basis),
                (3, 2, 5),
            )
            for basis in ("raw", "unit")
        ),
    ],
    ids=["entropy", "variance_raw", "variance_unit"],
)


@EACH
def test_penalty_and_gradient_equal_loops(
    kind,
    compute_slowly,
    shape,
    rng,
) -> None:
    values = rng.normal(0.5, 1.0, size=shape)
    for reduction in ("sum", "mean"):
        for scaled in (values, 0.01 * values):
            found = kind(0.3, reduction=reduction)(scaled)
            slow = 0.3 * getattr(compute_slowly(scaled), reduction)()
            np.testing.assert_allclose(found, slow, rtol=1e-6)
    expected = compute_differences(lambda v: compute_slowly(v).sum(), values)
    actual = compute_gradient(kind(1.0), values)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_entropy_of_known_rows_of_any_scale(rng) -> None:
    penalty = EntropyRegularizer(1.0)
    assert float(penalty([[0.0, 3.0, 0.0, 0.0]])) == 0.0
    assert float(penalty([[1.0, -1.0, 1.0, 1.0]])) == pytest.approx(math.log(4))
    row = rng.normal(size=(1, 6)).astype("float32")
    for scale in (1e-25, 1e25):
        scaled = penalty(row * np.float32(scale))
        np.testing.assert_allclose(scaled, penalty(row), rtol=1e-5)
    rows = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 1.0]], "float32")
    expected = compute_entropy_slowly(rows[1:]).sum()
    np.testing.assert_allclose(penalty(rows), expected, rtol=1e-6)
    gradient = compute_gradient(penalty, rows)
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[0], 0.0)
    assert gradient[1, 0] == 0.0


def test_variance_keeps_digits_near_constant_vectors() -> None:
    vectors = (1000.0 + np.arange(8.0) / 64).reshape(1, 1, 8)
    for basis in ("raw", "unit"):
        expected = compute_variance_slowly(vectors, basis).sum()
        actual = VarianceRegularizer(1.0, basis)(vectors.astype("float32"))
        np.testing.assert_allclose(actual, expected, rtol=1e-4)
        # As of images with one row or one column.
        single = compute_gradient(VarianceRegularizer(1.0, basis), [[[3.0]]])
        assert single == 0.0
