"""Encodings against NumPy; absent and categorical factors, gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.models import encodings
from tfcomp.models.encodings import BumpEncoding, FactorEncoding

ANGLE = Factor("angle", 8, 0.0, 360.0, unit="deg", periodic=True)
SPACE = FactorSpace(
    (Factor("x", 5, 0.0, 4.0), Factor("z", 7, -3.0, 3.0), ANGLE)
)
TABLE = np.array(
    [[0, -3, 0], [4, 3, 315], [1.3, 0.8, 350], [2.6, -1.7, 100]], np.float32
)
ABSENT = np.array(
    [[np.nan, 1, 90], [2, np.nan, np.nan], [np.nan] * 3], np.float32
)
ANY = np.concatenate([TABLE, ABSENT])
NAMED = FactorSpace((make_categories("digit", [4, 0, 1]), ANGLE))
POINTS = np.array([[4, 0], [0, 90], [1, 135]], np.float32)
ALL = {
    "bump": BumpEncoding(SPACE),
    "circle": encodings.CircleEncoding(SPACE),
    "ramp": encodings.RampEncoding(SPACE),
    "one_hot": encodings.OneHotEncoding(SPACE),
    "positional": encodings.PositionalEncoding(SPACE),
}
DIFFERENTIABLE = ("bump", "circle", "ramp", "positional")


def encode(encoding: FactorEncoding, table: np.ndarray) -> np.ndarray:
    return np.asarray(encoding(tf.constant(table)))


@pytest.mark.parametrize(
    "levels", [[-1000, -999.5, 2], [0, 1, 4], [0, 1e-9, 1e3], [7, 7.000001]]
)
def test_nearest_level_needs_no_operation_that_exports_lack(
    levels,
) -> None:
    factor = make_categories("digit", levels)
    values = np.r_[factor.values(), -1e6, 1e6, 2.5, -999.75].astype("float32")
    distances = np.abs(values[:, None] - factor.values())
    find = tf.function(lambda v: encodings.nearest_index(v, factor))
    traced = find.get_concrete_function(tf.constant(values))
    assert traced(tf.constant(values)).numpy().tolist() == [
        *distances.argmin(axis=1)
    ]
    assert 0 <= find(tf.constant([np.nan], tf.float32))[0] < factor.size
    assert "Bitcast" not in {o.type for o in traced.graph.get_operations()}


@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_bump_against_numpy(sigma) -> None:
    turns = np.array([[0, 0, 360], [0, 0, -360]], np.float32)
    table = np.concatenate([TABLE, SPACE.grid(), turns])
    parts = []
    for column, factor in enumerate(SPACE):
        distance = np.abs(table[:, column : column + 1] - factor.values())
        if factor.periodic:
            distance = np.minimum(distance % 360, -distance % 360)
        parts.append(np.exp(-((distance / factor.step / sigma) ** 2) / 2))
    expected = np.concatenate(parts, axis=1)
    found = encode(BumpEncoding(SPACE, sigma), table)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_bump_code_is_as_wide_as_the_image_or_code_width() -> None:
    for flags, sigma in (([], 1.5), (["--code_width=3"], 3.0)):
        config = parse_config(["--sigma=1.5", *flags])
        found = encode(BumpEncoding.of_run(config, SPACE), TABLE)
        expected = encode(BumpEncoding(SPACE, sigma), TABLE)
        np.testing.assert_array_equal(found, expected)


def test_one_hot_and_index_against_numpy() -> None:
    beyond = np.array([[-9, -9, 0], [9, 9, 0]], np.float32)
    table = np.concatenate([TABLE, beyond])
    expected = [
        np.eye(factor.size)[index]
        for factor, index in zip(SPACE, SPACE.to_index(table).T, strict=True)
    ]
    found = encode(ALL["one_hot"], table)
    np.testing.assert_array_equal(found, np.concatenate(expected, axis=1))
    # Indices are those of the space, NaN where a factor is absent.
    expected = SPACE.to_index(ANY).astype(float)
    expected[expected < 0] = np.nan
    np.testing.assert_array_equal(
        encode(encodings.FactorIndex(SPACE), ANY), expected
    )


def test_positional_against_numpy() -> None:
    encoding = encodings.PositionalEncoding(SPACE, max_wavelength=50.0)
    parts = []
    for column, factor in enumerate(SPACE):
        half = (factor.size + 1) // 2
        steps = (TABLE[:, column] - factor.low) / factor.step
        phases = np.array(
            [[s * 50.0 ** (-k / half) for k in range(half)] for s in steps]
        )
        parts += [np.sin(phases), np.cos(phases)]
    expected = np.concatenate(parts, axis=1)
    np.testing.assert_allclose(encode(encoding, TABLE), expected, atol=1e-5)
    assert [encoding.code_size(factor) for factor in SPACE] == [6, 8, 8]


@pytest.mark.parametrize(
    ("scaled_to", "expected"),
    [
        ("signed", [[-1, -1, -1], [1, 1, 0.75]]),
        ("unit", [[0, 0, 0], [1, 1, 0.875]]),
        ("raw", [[0, -3, 0], [4, 3, 315]]),
    ],
)
def test_ramp_ranges(scaled_to, expected) -> None:
    found = encode(encodings.RampEncoding(SPACE, scaled_to), TABLE[:2])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_circle_against_numpy() -> None:
    x, z, angle = ANY.T
    radians = np.deg2rad(angle)
    codes = [x / 2 - 1, z / 3, np.cos(radians), np.sin(radians)]
    expected = np.nan_to_num(np.stack(codes, axis=1))  # zeros where absent
    found = encode(ALL["circle"], ANY)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_is_that_of_differences(name) -> None:
    table = np.array([[1.3, 0.8, 40.0], [2.6, -1.7, 101.0]], np.float32)
    factors = tf.constant(table)
    with tf.GradientTape() as tape:
        tape.watch(factors)
        code = ALL[name](factors)
    jacobian = tape.batch_jacobian(code, factors).numpy()
    for column, factor in enumerate(SPACE):
        step = np.zeros(3, np.float32)
        step[column] = 0.01 * factor.step
        ahead, back = (encode(ALL[name], table + s) for s in (step, -step))
        expected = (ahead - back) / (2 * step[column])
        np.testing.assert_allclose(jacobian[:, :, column], expected, atol=2e-4)


# Categorical factors


@pytest.mark.parametrize("name", ALL)
def test_code_of_a_categorical_factor_is_one_hot(name) -> None:
    layer = type(ALL[name])(NAMED)
    code = encode(layer, POINTS)
    np.testing.assert_array_equal(code[:, :3], np.eye(3)[[2, 0, 1]])
    assert code.shape == layer.compute_output_shape(POINTS.shape)


# Layers


@pytest.mark.parametrize(
    "encoding",
    [
        BumpEncoding(SPACE, 1.7),
        encodings.RampEncoding(SPACE, "unit", -0.5),
        encodings.OneHotEncoding(SPACE),
        encodings.CircleEncoding(SPACE),
        encodings.PositionalEncoding(SPACE, 30.0),
        encodings.FactorIndex(SPACE),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_saved_model_has_the_same_code(encoding, tmp_path) -> None:
    factors = keras.Input((3,), name="factors")
    model = keras.Model(factors, encoding(factors))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    layer = loaded.layers[-1]
    assert type(layer) is type(encoding)
    assert layer.space == SPACE
    assert layer.get_config() == encoding.get_config()
    np.testing.assert_array_equal(
        loaded.predict(ANY, verbose=0), model.predict(ANY, verbose=0)
    )
