"""The low-rank embedding against slow loops, and its decoder."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose
from pytest import approx

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.metrics.embeddings import analyze_embedding
from tfcomp.models import forced_rendering, pixels
from tfcomp.models.forced_rendering import LowRankEmbedding, list_embeddings
from tfcomp.models.registry import make_model

NUM_VALUES = 5
SHAPE = (4, 6)
RANK = 3


def make_layer(inputs: str = "index", **options) -> LowRankEmbedding:
    layer = LowRankEmbedding(NUM_VALUES, SHAPE, RANK, inputs=inputs, **options)
    shape = (None,)
    if inputs == "code":
        shape = (None, NUM_VALUES)
    layer.build(shape)
    return layer


def compute_matrices_slowly(layer: LowRankEmbedding) -> np.ndarray:
    coefficients, left, right = layer.get_weights()
    matrices = np.zeros((NUM_VALUES, *SHAPE))
    for i, r in np.ndindex(coefficients.shape):
        u = left[i, r]
        v = right[i, r]
        matrix = np.outer(u, v)
        matrix /= np.linalg.norm(matrix)
        matrices[i] += coefficients[i, r] * matrix
    return matrices


def compute_gradients(layer: keras.Layer, inputs, weights=1.0) -> list:
    """Of a weighted sum of the outputs."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs) * weights)
    gradients = tape.gradient(loss, layer.trainable_variables)
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_matrices_equal_loop_whatever_the_length_of_vectors(scale):
    layer = make_layer()
    coefficients, left, right = layer.get_weights()
    layer.set_weights([coefficients, scale * left, right / scale])
    index = np.array([4, 0, 0, 2])

    images = layer(index)

    expected = compute_matrices_slowly(layer)
    singular = np.linalg.svd(expected, compute_uv=False)
    largest = singular[:, :RANK]
    assert_allclose(layer.matrices(), expected, atol=1e-6)
    assert_allclose(images, expected[index], atol=1e-6)
    assert_allclose(layer.spectrum(), largest, atol=1e-5)


@pytest.mark.parametrize(
    "index",
    [
        np.float32([np.nan, -1, 5, 1e30, -np.inf]),
        np.int32([-1, 5, -5, 2**31 - 1, -(2**31)]),
        np.int64([-1, 5, 2**32, 2**32 + 1, -(2**40)]),
    ],
    ids=["float32", "int32", "int64"],
)
def test_absent_factor_is_the_zero_matrix(index):
    layer = make_layer()

    images = layer(index)
    (first,) = layer(0 * index[1:2])

    assert not np.any(images)
    assert_allclose(first, layer.matrices()[0], atol=1e-6)
    for gradient in compute_gradients(layer, index):
        assert not np.any(gradient)


def test_soft_code_mixes_matrices(rng):
    layer = make_layer("code")
    code = rng.random((2, NUM_VALUES), np.float32)

    images = layer(code)

    expected = np.einsum("bv,vij->bij", code, layer.matrices())
    assert_allclose(images, expected, atol=1e-5)


def test_zero_vectors_are_finite(rng):
    layer = make_layer()
    coefficients, left, right = layer.get_weights()
    left[0, 1] = 0.0
    left[1] = 0.0
    right[1] = 0.0
    layer.set_weights([coefficients, left, right])
    index = np.arange(NUM_VALUES)
    weights = rng.standard_normal((NUM_VALUES, *SHAPE), np.float32)

    matrices = layer.matrices()
    gradients = compute_gradients(layer, index, weights)

    for gradient in gradients:
        assert np.isfinite(gradient).all()
    assert np.isfinite(matrices).all()
    assert not np.any(matrices[1])


def test_mixed_precision_keeps_large_indices():
    layer = LowRankEmbedding(300, 4, 2, dtype="mixed_bfloat16")

    (image,) = layer(np.float32([257]))

    assert image.dtype == tf.bfloat16
    expected = layer.matrices()[257]
    assert_allclose(tf.cast(image, "float32"), expected, atol=0.05)


def test_config_round_trip():
    layer = make_layer(
        "code",
        coefficient_regularizer=forced_rendering.EntropyRegularizer(0.1),
        right_regularizer=forced_rendering.VarianceRegularizer(0.2, "unit"),
        name="matrices",
    )

    text = json.dumps(keras.layers.serialize(layer))
    copy = keras.layers.deserialize(json.loads(text))

    copied = [weight.regularizer for weight in copy.trainable_weights]
    own = [weight.regularizer for weight in layer.trainable_weights]
    assert list(map(type, copied)) == list(map(type, own))
    assert copy.get_config() == layer.get_config()
    assert copy.compute_output_shape((7, 5)) == (7, *SHAPE)


def test_published_start():
    config = parse_config(["--flagfile=low_rank.flags"])
    dataset = make_dataset(config)

    model = make_model(config, dataset, "float32")
    layer = list_embeddings(model)["y"]
    analysis = analyze_embedding(layer)

    # 0.1 * entropy was 17.8 and 0.01 * variance 1.28 at the published start.
    penalties = np.reshape(model.losses, (2, 3))  # [x and y, kind]
    entropy, left, right = penalties.sum(axis=0)
    assert entropy == approx(17.8, abs=0.3)
    assert left + right == approx(1.28, abs=0.04)

    _, *vectors = layer.get_weights()
    variance = np.var(vectors, axis=-1, ddof=1).mean()
    assert analysis.matrices.shape == (32, 32, 32)
    assert analysis.summary["variance_raw"] == approx(variance, 1e-5)
    assert 1 < analysis.summary["effective_rank"] < 32


def test_narrow_convolution_is_a_convolution(rng):
    images = rng.standard_normal((3, 6, 5, 2), np.float32)
    kernel = rng.normal(size=(3, 3, 2, 2))
    bias = rng.normal(size=2)

    results = []
    for kind in (pixels.NarrowConvolution, keras.layers.Conv2DTranspose):
        layer = kind(2, 3, padding="same")
        layer.build(images.shape)
        layer.set_weights([kernel, bias])
        outputs = layer(images)
        gradients = compute_gradients(layer, images, outputs)
        results.append([outputs, *gradients])

    for narrow, expected in zip(*results, strict=True):
        assert_allclose(narrow, expected, rtol=1e-5, atol=1e-4)
