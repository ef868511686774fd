"""The low-rank embedding against slow loops, and what it refuses."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.models.low_rank_embedding import LowRankEmbedding
from tfcomp.models.regularizers import EntropyRegularizer, VarianceRegularizer

NUM_VALUES, ROWS, COLUMNS, RANK = 5, 4, 6, 3


def make_layer(inputs: str = "index", **kwargs) -> LowRankEmbedding:
    layer = LowRankEmbedding(
        NUM_VALUES, (ROWS, COLUMNS), RANK, inputs=inputs, **kwargs
    )
    layer.build((None,) if inputs == "index" else (None, NUM_VALUES))
    return layer


def compute_matrices_slowly(layer: LowRankEmbedding) -> np.ndarray:
    coefficients, left, right = (np.float64(w) for w in layer.get_weights())
    matrices = np.zeros((NUM_VALUES, ROWS, COLUMNS))
    for i, r in np.ndindex(*coefficients.shape):
        u = left[i, r] / np.linalg.norm(left[i, r])
        v = right[i, r] / np.linalg.norm(right[i, r])
        for row, column in np.ndindex(ROWS, COLUMNS):
            matrices[i, row, column] += coefficients[i, r] * u[row] * v[column]
    return matrices


def compute_gradients(layer: LowRankEmbedding, inputs, cotangent) -> list:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs) * cotangent)
    gradients = tape.gradient(loss, layer.trainable_variables)
    return [tf.convert_to_tensor(g).numpy() for g in gradients]


@pytest.mark.parametrize("scale", [1.0, 1e-3, 50.0])
def test_matrices_equal_loop_whatever_the_length_of_vectors(
    scale: float,
) -> None:
    layer = make_layer()
    coefficients, left, right = layer.get_weights()
    layer.set_weights([coefficients, scale * left, right / scale])
    expected = compute_matrices_slowly(layer)
    np.testing.assert_allclose(layer.matrices(), expected, atol=1e-6)
    index = np.array([4, 0, 0, 2])
    np.testing.assert_allclose(layer(index), expected[index], atol=1e-6)


@pytest.mark.parametrize(
    "index",
    [
        np.array([np.nan, -1.0, 5.0, 1e30, -np.inf, 0.0], "float32"),
        np.array([-1, 5, -5, 2**31 - 1, -(2**31), 0], "int32"),
        np.array([-1, 5, 2**32, 2**32 + 1, -(2**40), 0], "int64"),
    ],
)
def test_absent_factor_is_the_zero_matrix(index: np.ndarray) -> None:
    layer = make_layer()
    image = layer(index).numpy()
    np.testing.assert_array_equal(image[:-1], 0.0)
    np.testing.assert_allclose(image[-1], layer.matrices()[0], atol=1e-6)
    for gradient in compute_gradients(layer, index[:-1], 1.0):
        np.testing.assert_array_equal(gradient, 0.0)


def test_index_equals_one_hot_code(rng: np.random.Generator) -> None:
    by_index = make_layer("index")
    by_code = make_layer("code")
    by_code.set_weights(by_index.get_weights())
    index = np.array([3, 0, 3, 4])
    code = np.eye(NUM_VALUES, dtype="float32")[index]
    np.testing.assert_allclose(by_code(code), by_index(index), atol=1e-6)
    cotangent = rng.normal(size=(4, ROWS, COLUMNS)).astype("float32")
    expected = compute_gradients(by_code, code, cotangent)
    actual = compute_gradients(by_index, index, cotangent)
    for one, two in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_soft_code_mixes_matrices_differentiably(
    rng: np.random.Generator,
) -> None:
    layer = make_layer("code")
    code = tf.constant(rng.uniform(size=(2, NUM_VALUES)), tf.float32)
    matrices = layer.matrices().numpy()
    with tf.GradientTape() as tape:
        tape.watch(code)
        image = layer(code)
    expected = np.einsum("bv,vij->bij", code, matrices)
    np.testing.assert_allclose(image, expected, atol=1e-5)
    gradient = tape.gradient(image, code)
    expected = np.tile(matrices.sum(axis=(1, 2)), (2, 1))
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_gradients_equal_differences(rng: np.random.Generator) -> None:
    layer = make_layer(dtype="float64")
    index = np.array([1, 1, 3])
    cotangent = rng.normal(size=(3, ROWS, COLUMNS))
    gradients = compute_gradients(layer, index, cotangent)
    for variable, gradient in zip(
        layer.trainable_variables, gradients, strict=True
    ):
        value = variable.numpy()
        # Along random directions: each probes all entries of a weight.
        for _ in range(3):
            direction = rng.normal(size=value.shape)
            sums = []
            for step in (1e-5, -1e-5):
                variable.assign(value + step * direction)
                sums.append(np.sum(layer(index) * cotangent))
            variable.assign(value)
            difference = (sums[0] - sums[1]) / 2e-5
            assert np.sum(gradient * direction) == pytest.approx(
                difference, rel=1e-5
            )


def test_zero_vectors_are_finite(rng: np.random.Generator) -> None:
    layer = make_layer()
    coefficients, left, right = layer.get_weights()
    left[0, 1] = left[1] = right[1] = 0.0
    left[2, 1] = left[2, 0]
    layer.set_weights([coefficients, left, right])
    index = np.arange(NUM_VALUES)
    assert np.isfinite(layer(index)).all()
    cotangent = rng.normal(size=(NUM_VALUES, ROWS, COLUMNS)).astype("float32")
    for gradient in compute_gradients(layer, index, cotangent):
        assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(layer.matrices()[1], 0.0)


def test_spectrum_is_that_of_the_matrices() -> None:
    layer = make_layer()
    expected = np.linalg.svd(compute_matrices_slowly(layer), compute_uv=False)
    np.testing.assert_allclose(layer.spectrum(), expected[:, :RANK], atol=1e-5)


def test_mixed_precision_keeps_large_indices() -> None:
    layer = LowRankEmbedding(300, 4, 2, dtype="mixed_bfloat16")
    image = layer(np.array([257.0], "float32"))
    assert image.dtype == tf.bfloat16
    expected = layer.matrices()[257:258]
    np.testing.assert_allclose(
        tf.cast(image, "float32"), expected, rtol=1e-2, atol=1e-3
    )


def test_config_round_trip() -> None:
    layer = make_layer(
        "code",
        coefficient_regularizer=EntropyRegularizer(0.1),
        right_regularizer=VarianceRegularizer(0.2, "unit"),
        name="matrices",
    )
    copy = keras.layers.deserialize(
        json.loads(json.dumps(keras.layers.serialize(layer)))
    )
    assert copy.get_config() == layer.get_config()
    assert copy.compute_output_shape((7, 5)) == (7, ROWS, COLUMNS)
