"""Encodings against NumPy; absent and categorical factors, gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose, assert_array_equal

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.models import encodings
from tfcomp.models.encodings import BumpEncoding, FactorEncoding

ANGLE = Factor("angle", 8, 0.0, 360.0, periodic=True)
SPACE = FactorSpace(
    (
        Factor("x", 5, 0.0, 4.0),
        Factor("z", 7, -3.0, 3.0),
        ANGLE,
    )
)
TABLE = np.float32(
    [
        [0, -3, 0],
        [4, 3, 315],
        [1.3, 0.8, 350],
        [2.6, -1.7, 100],
    ]
)
NAN = np.nan
ABSENT = np.float32(
    [
        [NAN, 1, 90],
        [2, NAN, NAN],
        [NAN, NAN, NAN],
    ]
)
ANY = np.concatenate([TABLE, ABSENT])
KINDS = {
    "bump": BumpEncoding,
    "circle": encodings.CircleEncoding,
    "ramp": encodings.RampEncoding,
    "positional": encodings.PositionalEncoding,
    "one_hot": encodings.OneHotEncoding,
}


def encode(encoding: FactorEncoding, table: np.ndarray = TABLE) -> np.ndarray:
    factors = tf.constant(table)
    return np.asarray(encoding(factors))


@pytest.mark.parametrize(
    "levels",
    [
        [-1000, -999.5, 2],
        [0, 1, 4],
        [0, 1e-9, 1e3],
        [7, 7.000001],
    ],
)
def test_nearest_level_needs_no_operation_that_exports_lack(levels):
    factor = make_categories("digit", levels)
    others = [-1e6, 1e6, 2.5, -999.75, NAN]
    values = np.float32([*factor.values(), *others])
    inputs = tf.constant(values)
    find = tf.function(
        lambda values: encodings.nearest_index(values, factor),
        autograph=False,
    )
    traced = find.get_concrete_function(inputs)

    *index, absent = traced(inputs).numpy()

    distances = np.abs(values[:-1, None] - factor.values())
    assert_array_equal(index, distances.argmin(axis=1))
    assert 0 <= absent < factor.size
    operations = traced.graph.get_operations()
    assert "Bitcast" not in {node.type for node in operations}


@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_bump_against_numpy(sigma):
    turns = TABLE + [0, 0, 360]
    table = np.concatenate([TABLE, SPACE.grid(), turns, -turns])

    code = encode(BumpEncoding(SPACE, sigma), np.float32(table))

    parts = []
    for values, factor in zip(table.T, SPACE, strict=True):
        distance = np.abs(values[:, None] - factor.values())
        if factor.periodic:
            distance = np.minimum(distance % 360, -distance % 360)
        steps = distance / factor.step
        parts.append(np.exp(-0.5 * (steps / sigma) ** 2))
    assert_allclose(code, np.hstack(parts), atol=1e-6)


@pytest.mark.parametrize(
    "flags, sigma",
    [
        ([], 1.5),
        (["--code_width=3"], 3.0),
    ],
)
def test_bump_code_is_as_wide_as_the_image_or_code_width(flags, sigma):
    config = parse_config(["--sigma=1.5", *flags])

    code = encode(BumpEncoding.of_run(config, SPACE))

    expected = encode(BumpEncoding(SPACE, sigma))
    assert_array_equal(code, expected)


def test_one_hot_against_numpy():
    beyond = [[-9, -9, 0], [9, 9, 0]]
    table = np.float32([*TABLE, *beyond])

    code = encode(encodings.OneHotEncoding(SPACE), table)

    parts = []
    index = SPACE.to_index(table)
    for factor, column in zip(SPACE, index.T, strict=True):
        parts.append(np.eye(factor.size)[column])
    assert_array_equal(code, np.hstack(parts))


def test_indices_are_those_of_the_space():
    index = encode(encodings.FactorIndex(SPACE), ANY)

    expected = SPACE.to_index(ANY).astype(float)
    expected[expected < 0] = NAN  # absent
    assert_array_equal(index, expected)


def test_positional_against_numpy():
    encoding = encodings.PositionalEncoding(SPACE, max_wavelength=50.0)

    code = encode(encoding)

    parts = []
    for values, factor in zip(TABLE.T, SPACE, strict=True):
        half = (factor.size + 1) // 2
        steps = (values - factor.low) / factor.step
        powers = np.arange(half) / half
        phases = np.outer(steps, 50.0**-powers)
        parts += [np.sin(phases), np.cos(phases)]
    sizes = [encoding.code_size(factor) for factor in SPACE]
    assert_allclose(code, np.hstack(parts), atol=1e-5)
    assert sizes == [6, 8, 8]


@pytest.mark.parametrize(
    "scaled_to, first, last",
    [
        ("signed", [-1, -1, -1], [1, 1, 0.75]),
        ("unit", [0, 0, 0], [1, 1, 0.875]),
        ("raw", [0, -3, 0], [4, 3, 315]),
    ],
)
def test_ramp_ranges(scaled_to, first, last):
    encoding = encodings.RampEncoding(SPACE, scaled_to)
    code = encode(encoding, TABLE[:2])
    assert_allclose(code, [first, last], atol=1e-6)


def test_circle_against_numpy():
    code = encode(encodings.CircleEncoding(SPACE), ANY)

    x, z, angle = ANY.T
    radians = np.deg2rad(angle)
    columns = [
        x / 2 - 1,
        z / 3,
        np.cos(radians),
        np.sin(radians),
    ]
    expected = np.nan_to_num(columns)  # zeros where absent
    assert_allclose(code.T, expected, atol=1e-6)


@pytest.mark.parametrize("name", [*KINDS][:-1])
def test_gradient_equals_differences(name):
    table = np.float32([[1.3, 0.8, 40.0], [2.6, -1.7, 101.0]])
    encoding = KINDS[name](SPACE)
    factors = tf.constant(table)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(factors)
        code = encoding(factors)
        units = tf.unstack(code, axis=1)
    gradients = [tape.gradient(unit, factors) for unit in units]
    jacobian = np.stack(gradients, axis=1)

    steps = [0.01 * factor.step for factor in SPACE]
    for column, step in enumerate(np.float32(np.diag(steps))):
        ahead = encode(encoding, table + step)
        back = encode(encoding, table - step)
        slopes = (ahead - back) / (2 * step.max())
        assert_allclose(jacobian[..., column], slopes, atol=2e-4)


@pytest.mark.parametrize("name", KINDS)
def test_code_of_a_categorical_factor_is_one_hot(name):
    digit = make_categories("digit", [4, 0, 1])
    points = np.float32(
        [
            [4, 0],
            [0, 90],
            [1, 135],
        ]
    )
    layer = KINDS[name](FactorSpace((digit, ANGLE)))

    code = encode(layer, points)

    expected = np.eye(3)[[2, 0, 1]]
    assert_array_equal(code[:, :3], expected)
    assert code.shape == layer.compute_output_shape(points.shape)


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
def test_saved_model_has_the_same_code(encoding, tmp_path):
    file = tmp_path / "model.keras"
    factors = keras.Input((3,), name="factors")
    model = keras.Model(factors, encoding(factors))

    model.save(file)
    loaded = keras.models.load_model(file)

    layer = loaded.layers[-1]
    assert type(layer) is type(encoding)
    assert layer.get_config() == encoding.get_config()
    assert_array_equal(loaded(ANY), model(ANY))
