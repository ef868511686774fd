"""Entropy and variance penalties against slow loops and known cases."""

import functools
import math
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.models.forced_rendering import (
    EntropyRegularizer,
    VarianceRegularizer,
)


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
    kind: Callable,
    compute_slowly: Callable,
    shape: tuple[int, ...],
    rng: np.random.Generator,
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


def test_entropy_of_known_rows() -> None:
    penalty = EntropyRegularizer(1.0)
    assert float(penalty([[0.0, 3.0, 0.0, 0.0]])) == 0.0
    assert float(penalty([[1.0, -1.0, 1.0, 1.0]])) == pytest.approx(math.log(4))
    assert float(penalty([[1.0, 1.0, 0.0]])) == pytest.approx(math.log(2))


def test_entropy_ignores_scale(rng: np.random.Generator) -> None:
    row = rng.normal(size=(1, 6)).astype("float32")
    penalty = EntropyRegularizer(1.0)
    for scale in (1e-25, 1e25):
        scaled = penalty(row * np.float32(scale))
        np.testing.assert_allclose(scaled, penalty(row), rtol=1e-5)


def test_entropy_of_zeros_is_finite() -> None:
    rows = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 1.0]], "float32")
    regularizer = EntropyRegularizer(1.0)
    expected = compute_entropy_slowly(rows[1:]).sum()
    np.testing.assert_allclose(regularizer(rows), expected, rtol=1e-6)
    gradient = compute_gradient(regularizer, rows)
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[0], 0.0)
    assert gradient[1, 0] == 0.0


def test_variance_keeps_digits_near_constant_vectors() -> None:
    vectors = (1000.0 + np.arange(8.0) / 64).reshape(1, 1, 8)
    for basis in ("raw", "unit"):
        expected = compute_variance_slowly(vectors, basis).sum()
        actual = VarianceRegularizer(1.0, basis)(vectors.astype("float32"))
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


@pytest.mark.parametrize(
    "regularizer",
    [EntropyRegularizer(0.1, "mean"), VarianceRegularizer(0.2, "unit", "mean")],
)
def test_regularizer_survives_serialization(regularizer) -> None:
    config = keras.regularizers.serialize(regularizer)
    copy = keras.regularizers.get(config)
    assert type(copy) is type(regularizer)
    assert copy.get_config() == regularizer.get_config()
    assert config["registered_name"].startswith("tfcomp>")
