"""Jacobians against algebra, gradients and differences."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose
from pytest import approx

from tests.metrics.planted import make_noise
from tfcomp.metrics.jacobians import (
    compute_difference_jacobians,
    compute_stage_jacobians,
    compute_stage_metrics,
)
from tfcomp.models import registry

Stages = dict[str, tf.Tensor]


def make_decoder() -> keras.Model:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    factors = keras.Input((2,))
    hidden = layers.Dense(12, "tanh")(factors)
    pixel = layers.Reshape((1, 1, 12))(hidden)
    first = layers.Conv2DTranspose(6, 3, activation="relu")(pixel)
    image = layers.Conv2DTranspose(1, 4, 2, "same")(first)
    return keras.Model(
        factors,
        {
            "hidden": hidden,
            "conv": first,
            "image": image,
        },
    )


def make_factors(count: int) -> tf.Tensor:
    values = make_noise(count, 2, seed=1)
    return tf.constant(values, tf.float32)


def square(factors: tf.Tensor) -> Stages:
    return {"h": factors**2}


def test_equals_a_gradient_of_each_unit():
    """The definition takes one backward pass per unit."""
    model = make_decoder()
    factors = make_factors(5)

    jacobians = compute_stage_jacobians(model, factors)
    alone = compute_stage_jacobians(model, factors[3:4])  # rows do not mix

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(factors)
        stages = model(factors)
        flat = [tf.reshape(units, (5, -1)) for units in stages.values()]
        every_unit = tf.concat(flat, axis=1)
        units = tf.unstack(every_unit[:, ::17], axis=1)
    slopes = [tape.gradient(unit, factors) for unit in units]
    expected = np.stack(slopes, axis=1)
    assert list(jacobians) == list(stages)
    joined = np.concatenate([*jacobians.values()], axis=1)
    assert_allclose(joined[:, ::17], expected, rtol=1e-4, atol=1e-6)
    joined = np.concatenate([*alone.values()], axis=1)
    assert_allclose(joined[:, ::17], expected[3:4], atol=1e-6)


def test_odd_stages():
    """Constant, shared, the factors themselves, and one value a row."""

    def stage_fn(f: tf.Tensor) -> Stages:
        h = tf.sin(f)
        return {
            "factors": f,
            "h": h,
            "same": h,
            "row": tf.reduce_sum(h, axis=1),
            "constant": tf.ones([3, 3]),
        }

    factors = make_factors(3)

    jacobians = compute_stage_jacobians(stage_fn, factors)

    slopes = tf.cos(factors)
    diagonal = tf.linalg.diag(slopes)
    expected = {
        "factors": [np.eye(2)] * 3,
        "h": diagonal,
        "same": diagonal,
        "row": slopes[:, None],
        "constant": np.zeros((3, 3, 2)),
    }
    for stage, jacobian in expected.items():
        assert_allclose(jacobians[stage], jacobian, atol=1e-6)


def test_a_model_of_a_constant():
    def stage_fn(f: tf.Tensor) -> Stages:
        return {"h": tf.ones([3, 5])}

    jacobians = compute_stage_jacobians(stage_fn, make_factors(3))

    assert jacobians["h"].shape == (3, 5, 2)
    assert not np.any(jacobians["h"])


@pytest.mark.parametrize(
    "values, slopes",
    [
        ([0.0, 0.1, 0.2], [0.1, 0.2, 0.3]),
        ([1.0, 2.0, 5.0], [3 / 1, 24 / 4, 21 / 3]),
        ([7.0], [0.0]),  # no neighbor
    ],
)
def test_differences_are_one_sided_at_the_border(values, slopes):
    levels = np.float32(values)
    factors = tf.constant(levels[:, None])

    jacobians = compute_difference_jacobians(square, factors, [levels])

    assert_allclose(jacobians["h"][:, 0, 0], slopes, rtol=1e-4)


def test_differences_are_those_of_each_factor():
    factors = tf.constant([[1.0, 0.5]])
    of_first = np.array([0, 1])
    of_second = np.array([0, 0.5, 1])
    levels = [of_first, of_second]

    jacobians = compute_difference_jacobians(square, factors, levels)

    (jacobian,) = jacobians["h"]
    assert_allclose(jacobian, np.eye(2), atol=1e-5)


def test_metrics_resolve_what_float32_products_lose():
    weights = tf.constant([[1.0, 0.0], [1.0, 1e-5]])

    def stage_fn(f: tf.Tensor) -> Stages:
        return {"h": f @ weights}

    metrics = compute_stage_metrics(stage_fn, make_factors(1))

    volume = np.linalg.det(metrics["h"][0])
    assert volume == approx(1e-10, rel=1e-3)


@pytest.mark.parametrize("count", [1, 9])
def test_batches_trace_once_and_lose_nothing(count):
    traces = []
    factors = make_factors(count)

    def compute(f: tf.Tensor) -> Stages:
        traces.append(f)
        return compute_stage_metrics(square, f)

    metrics = registry.evaluate_in_batches(
        compute, factors.numpy(), batch_size=4
    )

    expected = compute_stage_metrics(square, factors)
    assert len(traces) == 1
    assert_allclose(metrics["h"], expected["h"], rtol=1e-6)


@pytest.mark.parametrize(
    "gpus, gigabytes, units, batch_size",
    [
        ([], 80, 2000, 1048),
        ([], 80, 167_048, 28),
        (["GPU"], 80, 167_048, 1004),
        (["GPU"], 8, 167_048, 100),
    ],
)
def test_one_call_takes_what_memory_allows(
    gpus, gigabytes, units, batch_size, monkeypatch
):
    """A small network and the donut, on a CPU and on two GPUs."""
    memory = gigabytes << 30
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(registry, "count_device_memory", lambda: memory)

    assert registry.choose_batch_size(units, 784) == batch_size
