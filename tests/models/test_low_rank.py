"""The low-rank decoder: lookup, penalties, bad settings."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import define_run_flags, parse_config, parse_flags
from tfcomp.datasets import make_dataset
from tfcomp.evaluation.evaluator import analyze_embedding
from tfcomp.models.low_rank import NarrowConvolution, list_embeddings
from tfcomp.training.prepared_models import make_model

SMALL = ("--grid_size=12", "--region=corner:8", "--rank=4")


def make_run(*flags: str) -> RunConfig:
    return parse_config(["--flagfile=low_rank.flags", *flags])


def make(*flags: str) -> keras.Model:
    config = make_run(*flags)
    return make_model(config, make_dataset(config), "float32")


def test_published_initial_penalties() -> None:
    penalties = np.reshape(make().losses, (2, 3))  # [x and y, kind]
    entropy, left, right = penalties.sum(axis=0)
    # 0.1 * entropy was 17.8 and 0.01 * variance 1.28 at the published start.
    assert entropy == pytest.approx(17.8, abs=0.3)
    assert left + right == pytest.approx(1.28, abs=0.04)


@pytest.mark.parametrize("filters", [1, 2])
def test_narrow_convolution_is_that_of_keras(
    filters: int, rng: np.random.Generator
) -> None:
    images = rng.normal(size=(3, 6, 5, 2)).astype("float32")
    fast, plain = (
        kind(filters, 3, padding="same")
        for kind in (NarrowConvolution, keras.layers.Conv2DTranspose)
    )
    weights = rng.normal(size=18 * filters), rng.normal(size=filters)
    results = []
    for layer in (fast, plain):
        layer.build(images.shape)
        for variable, values in zip(layer.weights, weights, strict=True):
            variable.assign(values.reshape(variable.shape))
        with tf.GradientTape() as tape:
            image = layer(images)
            loss = tf.reduce_sum(image**2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        results.append([image, *gradients])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_embedding_analysis_against_numpy() -> None:
    layer = list_embeddings(make())["y"]
    found = analyze_embedding(layer)
    assert found.matrices.shape == (32, 32, 32)
    singular = np.linalg.svd(found.matrices[7], compute_uv=False)
    np.testing.assert_allclose(found.spectrum[7], singular, atol=1e-4)
    vectors = (np.asarray(layer.left), np.asarray(layer.right))
    expected = np.mean([np.var(w, axis=-1, ddof=1).mean() for w in vectors])
    assert found.summary["variance_raw"] == pytest.approx(expected, rel=1e-5)
    assert 1 < found.summary["effective_rank"] < 32


def test_lines_of_earlier_versions_are_read() -> None:
    old = parse_flags([*SMALL, "--orthogonal=false"], define_run_flags())
    assert old == parse_flags(SMALL, define_run_flags())


def test_published_start_is_a_flag() -> None:
    cnn = ("--flagfile=smoke.flags", "--start=published")
    config = parse_config(cnn)
    model = make_model(config, make_dataset(config), "float32")
    layer = model.get_layer("stage_2")
    bound = np.prod(layer.kernel.shape[:-1]) ** -0.5
    for weight in (layer.kernel, layer.bias):
        assert 0.8 * bound < np.abs(weight).max() < bound
    again = make_model(config, make_dataset(config), "float32")
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one, other)
