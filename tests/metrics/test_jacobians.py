"""Jacobians against algebra, `batch_jacobian` and differences."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.metrics import jacobians
from tfcomp.metrics.jacobians import compute_stage_jacobians
from tfcomp.models import stages

CENTERS = np.arange(8.0, dtype=np.float32)


def make_conv_model() -> keras.Model:
    factors = keras.Input((2,))
    hidden = keras.layers.Dense(12, activation="tanh")(factors)
    h = keras.layers.Reshape((1, 1, 12))(hidden)
    conv = keras.layers.Conv2DTranspose(6, 3, activation="relu")(h)
    h = keras.layers.Conv2DTranspose(4, 4, 2, "same", activation="relu")(conv)
    image = keras.layers.Conv2DTranspose(1, 3, padding="same")(h)
    stages = {"hidden": hidden, "conv": conv, "again": h, "image": image}
    return keras.Model(factors, stages)


def make_mlp(num_factors: int) -> keras.Model:
    factors = keras.Input((num_factors,))
    first = keras.layers.Dense(9, activation="gelu")(factors)
    second = keras.layers.Dense(7, activation="sigmoid")(first)
    return keras.Model(factors, {"first": first, "second": second})


def make_factors(n: int, num_factors: int) -> tf.Tensor:
    rng = np.random.default_rng(1)
    return tf.constant(rng.normal(size=(n, num_factors)), tf.float32)


def slow_jacobians(model, factors) -> dict[str, np.ndarray]:
    """The definition: one backward pass per unit."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(factors)
        flatten = keras.layers.Flatten()
        flat = {name: flatten(h) for name, h in model(factors).items()}
    return {name: tape.batch_jacobian(h, factors) for name, h in flat.items()}


def bump_code(factors: tf.Tensor) -> dict[str, tf.Tensor]:
    offsets = factors[:, :, None] - CENTERS  # [n, 2, 8]
    return {"code": tf.reshape(tf.exp(-0.5 * offsets**2), [-1, 16])}


@pytest.mark.parametrize(("kind", "in_graph"), [("conv", True), ("mlp", False)])
def test_equals_batch_jacobian(kind: str, in_graph: bool) -> None:
    keras.utils.set_random_seed(0)
    model = make_conv_model() if kind == "conv" else make_mlp(3)
    factors = make_factors(5, 2 if kind == "conv" else 3)

    def compute(f: tf.Tensor) -> dict[str, tf.Tensor]:
        return compute_stage_jacobians(model, f)

    found = (tf.function(compute) if in_graph else compute)(factors)
    assert list(found) == list(model(factors))
    alone = compute(factors[3:4])  # rows are independent
    for name, jacobian in slow_jacobians(model, factors).items():
        np.testing.assert_allclose(found[name], jacobian, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(alone[name][0], found[name][3], atol=1e-6)


def test_dynamic_batch_keeps_units_static() -> None:
    model = make_conv_model()
    spec = tf.TensorSpec([None, 2], tf.float32)
    compute = tf.function(
        lambda f: compute_stage_jacobians(model, f), input_signature=[spec]
    )
    factors = make_factors(4, 2)
    shapes = compute.get_concrete_function().output_shapes
    assert shapes["conv"].as_list()[1:] == [3 * 3 * 6, 2]
    expected = compute_stage_jacobians(model, factors)["image"]
    np.testing.assert_allclose(compute(factors)["image"], expected, atol=1e-6)


def test_odd_stages() -> None:
    """Constant, shared, the factors themselves, and one value a row."""

    def stage_fn(f: tf.Tensor) -> dict[str, tf.Tensor]:
        h = tf.sin(f)
        stages = {"factors": f, "h": h, "same": h, "constant": tf.ones([3, 3])}
        return stages | {"row": tf.reduce_sum(h, axis=1)}

    factors = make_factors(3, 2)
    found = compute_stage_jacobians(stage_fn, factors)
    expected = tf.linalg.diag(tf.cos(factors))
    np.testing.assert_array_equal(found["factors"][0], np.eye(2))
    row = tf.cos(factors)[:, None]
    for name, values in (("h", expected), ("same", expected), ("row", row)):
        np.testing.assert_allclose(found[name], values, atol=1e-6)
    np.testing.assert_array_equal(found["constant"], np.zeros((3, 3, 2)))
    alone = compute_stage_jacobians(lambda f: {"h": tf.ones([3, 5])}, factors)
    np.testing.assert_array_equal(alone["h"], np.zeros((3, 5, 2)))


def test_differences_are_one_sided_at_the_border() -> None:
    factors = tf.constant([[0.0, 0.9], [0.5, 1.0], [0.2, 0.0]])
    found = jacobians.compute_difference_jacobians(
        lambda f: {"h": f**2}, factors, [np.linspace(0, 1, 11)] * 2
    )["h"].numpy()
    expected = [[0.1, 1.8], [1.0, 1.9], [0.4, 0.1]]
    np.testing.assert_allclose(found[:, [0, 1], [0, 1]], expected, atol=1e-5)
    np.testing.assert_allclose(found[:, [0, 1], [1, 0]], 0.0, atol=1e-6)
    # Between uneven levels.
    factors = tf.constant([[1.0, 7.0], [2.0, 7.0], [5.0, 7.0]])
    found = jacobians.compute_difference_jacobians(
        lambda f: {"h": f**2}, factors, [np.array([1, 2, 5]), np.array([7])]
    )
    slopes = [(4 - 1) / 1, (25 - 1) / 4, (25 - 4) / 3]
    np.testing.assert_allclose(found["h"][:, 0, 0], slopes, rtol=1e-6)
    np.testing.assert_array_equal(found["h"][:, 1, 1], 0)  # no neighbor


def test_metrics_resolve_what_float32_products_lose() -> None:
    weights = tf.constant([[1.0, 0.0], [1.0, 1e-5]])
    metrics = jacobians.compute_stage_metrics(
        lambda f: {"h": f @ weights}, make_factors(1, 2)
    )
    np.testing.assert_allclose(np.linalg.det(metrics["h"][0]), 1e-10, rtol=1e-3)


@pytest.mark.parametrize("n", [1, 9])
def test_batches_trace_once_and_lose_nothing(n: int) -> None:
    num_traces = 0

    @tf.function
    def compute(f: tf.Tensor) -> dict[str, tf.Tensor]:
        nonlocal num_traces
        num_traces += 1
        return jacobians.compute_stage_metrics(bump_code, f)

    factors = make_factors(n, 2)
    found = stages.evaluate_in_batches(compute, factors.numpy(), batch_size=4)
    assert num_traces == 1
    expected = jacobians.compute_stage_metrics(bump_code, factors)["code"]
    np.testing.assert_allclose(found["code"], expected, rtol=1e-6)


def test_one_call_takes_what_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small network and the donut, on a CPU and on two GPUs."""
    gpus, memory, choose = [], [80 << 30], stages.choose_batch_size
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(stages, "count_device_memory", lambda: memory[-1])
    assert (choose(2000, 784), choose(167_048, 784)) == (1048, 28)
    gpus.append("GPU")
    assert choose(167_048, 784) == 1004
    memory.append(8 << 30)
    assert choose(167_048, 784) == 100
