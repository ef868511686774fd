"""The low-rank embedding against slow loops, and its decoder."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.embeddings import analyze_embedding
from tfcomp.models import forced_rendering, pixels
from tfcomp.models.forced_rendering import LowRankEmbedding
from tfcomp.models.stages import list_embeddings, make_model

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


def test_matrices_equal_loop_whatever_the_length_of_vectors() -> None:
    layer = make_layer()
    coefficients, left, right = layer.get_weights()
    index = np.array([4, 0, 0, 2])
    for scale in (1e-3, 50.0):
        layer.set_weights([coefficients, scale * left, right / scale])
        expected = compute_matrices_slowly(layer)
        np.testing.assert_allclose(layer.matrices(), expected, atol=1e-6)
        np.testing.assert_allclose(layer(index), expected[index], atol=1e-6)
    singular = np.linalg.svd(expected, compute_uv=False)
    np.testing.assert_allclose(layer.spectrum(), singular[:, :RANK], atol=1e-5)


@pytest.mark.parametrize(
    "index",
    [
        np.array([np.nan, -1.0, 5.0, 1e30, -np.inf, 0.0], "float32"),
        np.array([-1, 5, -5, 2**31 - 1, -(2**31), 0], "int32"),
        np.array([-1, 5, 2**32, 2**32 + 1, -(2**40), 0], "int64"),
    ],
)
def test_absent_factor_is_the_zero_matrix(index) -> None:
    layer = make_layer()
    image = layer(index).numpy()
    np.testing.assert_array_equal(image[:-1], 0.0)
    np.testing.assert_allclose(image[-1], layer.matrices()[0], atol=1e-6)
    for gradient in compute_gradients(layer, index[:-1], 1.0):
        np.testing.assert_array_equal(gradient, 0.0)


def test_soft_code_mixes_matrices(rng) -> None:
    layer = make_layer("code")
    code = rng.uniform(size=(2, NUM_VALUES)).astype("float32")
    expected = np.einsum("bv,vij->bij", code, layer.matrices())
    np.testing.assert_allclose(layer(code), expected, atol=1e-5)


def test_zero_vectors_are_finite(rng) -> None:
    layer = make_layer()
    coefficients, left, right = layer.get_weights()
    left[0, 1] = left[1] = right[1] = 0.0
    layer.set_weights([coefficients, left, right])
    cotangent = rng.normal(size=(NUM_VALUES, ROWS, COLUMNS)).astype("float32")
    for gradient in compute_gradients(layer, np.arange(NUM_VALUES), cotangent):
        assert np.isfinite(gradient).all()
    assert np.isfinite(layer.matrices()).all()
    np.testing.assert_array_equal(layer.matrices()[1], 0.0)


def test_mixed_precision_keeps_large_indices() -> None:
    layer = LowRankEmbedding(300, 4, 2, dtype="mixed_bfloat16")
    image = layer(np.array([257.0], "float32"))
    assert image.dtype == tf.bfloat16
    expected = layer.matrices()[257:258]
    np.testing.assert_allclose(tf.cast(image, "float32"), expected, atol=0.05)


def test_config_round_trip() -> None:
    layer = make_layer(
        "code",
        coefficient_regularizer=forced_rendering.EntropyRegularizer(
            0.1, "mean"
        ),
        right_regularizer=forced_rendering.VarianceRegularizer(0.2, "unit"),
        name="matrices",
    )
    config = json.loads(json.dumps(keras.layers.serialize(layer)))
    copy = keras.layers.deserialize(config)
    assert copy.get_config() == layer.get_config()
    assert copy.compute_output_shape((7, 5)) == (7, ROWS, COLUMNS)
    kinds = [type(w.regularizer).__name__ for w in copy.trainable_weights]
    assert kinds == ["EntropyRegularizer", "NoneType", "VarianceRegularizer"]


# The decoder


def make(*flags: str) -> keras.Model:
    config = parse_config(flags)
    return make_model(config, make_dataset(config), "float32")


def test_published_start() -> None:
    model = make("--flagfile=low_rank.flags")
    penalties = np.reshape(model.losses, (2, 3))  # [x and y, kind]
    entropy, left, right = penalties.sum(axis=0)
    # 0.1 * entropy was 17.8 and 0.01 * variance 1.28 at the published start.
    assert entropy == pytest.approx(17.8, abs=0.3)
    assert left + right == pytest.approx(1.28, abs=0.04)
    layer = list_embeddings(model)["y"]
    found = analyze_embedding(layer)
    assert found.matrices.shape == (32, 32, 32)
    vectors = (np.asarray(layer.left), np.asarray(layer.right))
    expected = np.mean([np.var(w, axis=-1, ddof=1).mean() for w in vectors])
    assert found.summary["variance_raw"] == pytest.approx(expected, rel=1e-5)
    assert 1 < found.summary["effective_rank"] < 32


def test_narrow_convolution_is_a_convolution(rng) -> None:
    images = rng.normal(size=(3, 6, 5, 2)).astype("float32")
    weights = rng.normal(size=(3, 3, 2, 2)), rng.normal(size=2)
    results = []
    for kind in (
        pixels.NarrowConvolution,
        keras.layers.Conv2DTranspose,
    ):
        layer = kind(2, 3, padding="same")
        layer.build(images.shape)
        layer.set_weights(weights)
        with tf.GradientTape() as tape:
            image = layer(images)
            loss = tf.reduce_sum(image**2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        results.append([image, *gradients])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
