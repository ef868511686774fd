"""Categorical factors: levels, codes, no derivative; the circle code."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfcomp.analysis import compute_stage_metrics
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.factors import make_categories
from tfcomp.evaluation.evaluator import choose_jacobian
from tfcomp.evaluation.evaluator import make_probe_targets
from tfcomp.models.encodings.factor_encoding import FactorEncoding
from tfcomp.models.encodings.population_codes import BumpEncoding
from tfcomp.models.encodings.population_codes import OneHotEncoding
from tfcomp.models.encodings.population_codes import PositionalEncoding
from tfcomp.models.encodings.scalar_codes import CircleEncoding
from tfcomp.models.encodings.scalar_codes import RampEncoding
from tfcomp.models.stages import make_stage_model

ANGLE = Factor("angle", 8, 0.0, 360.0, unit="degrees", periodic=True)
SPACE = FactorSpace((make_categories("digit", [4, 0, 1]), ANGLE))
POINTS = np.array([[4, 0], [0, 90], [1, 135]], np.float32)
NAMES = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
ENCODINGS = (BumpEncoding, CircleEncoding, PositionalEncoding, RampEncoding)


def test_levels() -> None:
    digit = SPACE["digit"]
    assert digit.values().tolist() == [0, 1, 4]
    values = np.array([4, 0, 1, np.nan, 3.5])
    assert digit.to_index(values).tolist() == [2, 0, 1, -1, 2]
    assert SPACE.ordered == (1,)


def test_space_survives_json() -> None:
    data = json.loads(json.dumps(SPACE.to_dict()))
    assert FactorSpace.from_dict(data) == SPACE


def test_samples_have_its_values_only(rng: np.random.Generator) -> None:
    points = SPACE.sample(100, rng)
    assert set(points[:, 0]) == {0, 1, 4}
    assert len(set(points[:, 1])) == 100


def test_only_categorical_factors_have_levels() -> None:
    with pytest.raises(ValueError, match="need a categorical"):
        Factor("x", 2, 0.0, 1.0, levels=(0.0, 1.0))


@pytest.mark.parametrize("encoding", [*ENCODINGS, OneHotEncoding])
def test_its_code_is_one_hot(encoding: type[FactorEncoding]) -> None:
    layer = encoding(SPACE)
    code = np.asarray(layer(tf.constant(POINTS)))
    np.testing.assert_array_equal(code[:, :3], NAMES)
    assert code.shape == layer.compute_output_shape(POINTS.shape)


def test_circle_against_numpy() -> None:
    radians = np.deg2rad(POINTS[:, 1])
    expected = np.stack([np.cos(radians), np.sin(radians)], axis=1)
    code = np.asarray(CircleEncoding(SPACE)(tf.constant(POINTS)))[:, 3:]
    np.testing.assert_allclose(code, expected, atol=1e-6)


def test_circle_of_an_absent_and_of_a_straight_factor() -> None:
    line = FactorSpace((Factor("x", 3, 0.0, 4.0), ANGLE))
    points = tf.constant([[1.0, np.nan], [np.nan, 90.0]])
    code = np.asarray(CircleEncoding(line)(points))
    np.testing.assert_allclose(code, [[-0.5, 0, 0], [0, 0, 1]], atol=1e-6)


@pytest.mark.parametrize("encoding", [CircleEncoding, OneHotEncoding])
def test_geometry_is_over_ordered_factors(
    encoding: type[FactorEncoding],
) -> None:
    factors = keras.Input((2,), name="factors")
    code = encoding(SPACE, name="code")(factors)
    model = keras.Model(factors, keras.layers.Dense(5, name="image")(code))
    jacobian_fn = choose_jacobian(model, SPACE)
    stages = make_stage_model(model)
    metrics = compute_stage_metrics(stages, tf.constant(POINTS), jacobian_fn)
    assert metrics["image"].shape == (3, 1, 1)
    if encoding is CircleEncoding:  # unit circle, per degree
        np.testing.assert_allclose(
            metrics["code"][:, 0, 0], np.deg2rad(1) ** 2, rtol=1e-5
        )


def test_probes_look_for_cos_and_sin() -> None:
    targets = make_probe_targets(SPACE, POINTS)
    np.testing.assert_allclose(targets[:2], [[1, 0], [0, 1]], atol=1e-6)
