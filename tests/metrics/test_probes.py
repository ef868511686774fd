"""Probes and ranks of features that are informative, noise, or dead."""

import numpy as np
import pytest
from numpy import ndarray as Array
from pytest import approx
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from tests.metrics.planted import hold_out, make_grid, make_noise
from tfcomp.metrics import probes
from tfcomp.metrics.features import (
    compute_effective_rank,
    compute_participation,
    compute_rows,
    normalize_rows,
)
from tfcomp.metrics.probes import NO_SCORES, probe_rows
from tfcomp.metrics.registry import Scores

TARGETS = make_grid(14, 14)
IS_OOD = hold_out(TARGETS, 4, 9)
NUM_TARGETS = len(TARGETS)
NOTHING = np.zeros(NUM_TARGETS, bool)


def probe(
    activations: Array,
    targets: Array = TARGETS,
    is_ood: Array = IS_OOD,
    seed: int = 0,
) -> Scores:
    rows = compute_rows(activations, is_ood)
    return probe_rows(rows, targets, is_ood, seed)


def make_linear(units: int) -> Array:
    return TARGETS @ make_noise(2, units) + 3


@pytest.mark.parametrize("units", [3, 160, 161, 500])
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_scores_are_those_of_separate_fits(units, noise):
    """By scikit-learn, with a decomposition for every fold."""
    signal = np.tanh(make_linear(units) / 9)
    activations = signal + noise * make_noise(NUM_TARGETS, units)
    ridge = RidgeCV(alphas=probes.PENALTIES)
    folds = KFold(
        probes.NUM_FOLDS,
        shuffle=True,
        random_state=3,
    )

    scores = probe(activations, seed=3)

    rows = normalize_rows(activations, IS_OOD)
    known = rows[~IS_OOD]
    truth = TARGETS[~IS_OOD]
    out_of_fold = cross_val_predict(ridge, known, truth, cv=folds)
    ridge.fit(known, truth)
    transferred = ridge.predict(rows[IS_OOD])
    expected = {
        "probe_r2_id": r2_score(truth, out_of_fold),
        "probe_r2_ood": r2_score(TARGETS[IS_OOD], transferred),
    }
    assert scores == approx(expected, abs=1e-6)


def test_units_of_factors_change_nothing():
    """Though one penalty serves all factors."""
    spread = 20 * (1 + TARGETS[:, :1])
    noise = spread * make_noise(NUM_TARGETS, 100)
    lopsided = make_linear(100) + noise
    scaled = TARGETS * [1, 1e-3]

    expected = probe(lopsided)

    assert probe(lopsided, scaled) == approx(expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("units", [5, 500])
def test_constant_features_score_nothing(units, value):
    constant = np.full((NUM_TARGETS, units), value, np.float32)
    scores = probe(constant)
    assert -0.1 < scores["probe_r2_id"] <= 0
    assert scores["probe_r2_ood"] <= 0


def test_what_has_no_score_and_what_is_left_out():
    features = make_linear(20)
    broken = features.copy()
    broken[3, 4] = np.nan
    few = np.arange(NUM_TARGETS) >= 9
    targets = TARGETS * [1, 0]  # one does not vary

    complete = probe(features, is_ood=NOTHING)
    varied = probe(features, targets)

    assert complete["probe_r2_id"] > 0.999
    assert complete["probe_r2_ood"] is None
    assert varied["probe_r2_ood"] > 0.999
    assert probe(features, targets[:, 1:]) == NO_SCORES
    assert probe(features, is_ood=few) == NO_SCORES
    assert probe(broken) == NO_SCORES


def test_means_that_rounding_has_left():
    """Few units that explain everything, in a Gram matrix of float32."""
    targets = make_noise(60, 2)
    noise = 1e-4 * make_noise(60, 70, seed=1)
    is_ood = np.arange(60) >= 50
    rows = np.hstack([1e3 + targets, noise])
    gram = np.float32(compute_rows(rows, is_ood))
    gram += np.float32(1e-3)  # a mean that is not zero

    scores = probe_rows(np.float64(gram), targets, is_ood)

    assert min(scores.values()) > 0.99


# Ranks

NUM_POINTS = 60
EVERY_THIRD = np.arange(NUM_POINTS) % 3 == 0
ALL_POINTS = np.ones(NUM_POINTS, bool)


def participate(stage: Array, points: Array) -> float | None:
    rows = compute_rows(stage, EVERY_THIRD)
    return compute_participation(rows, points)


@pytest.mark.parametrize("points", [ALL_POINTS, EVERY_THIRD, ~EVERY_THIRD])
@pytest.mark.parametrize("units", [10, 30, 200])
def test_participation_equals_the_definition(units, points, rng):
    scales = rng.uniform(size=units)
    stage = scales * make_noise(NUM_POINTS, units)

    ratio = participate(1e-3 * stage + 1, points)

    covariance = np.cov(stage[points].T)
    weights = np.linalg.eigvalsh(covariance)
    expected = weights.sum() ** 2 / np.sum(weights**2)
    assert ratio == approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "weights, rank",
    [
        ([2.0, 2.0, 0.0], 2),
        ([5.0, 0.0, 0.0], 1),
        ([1.0, 1.0, 1.0], 3),
        ([0.0, 0.0, 0.0], 0),
        ([1.0, np.nan], np.nan),
    ],
)
def test_effective_rank_of_known_weights(weights, rank):
    weights = np.array(weights)
    assert compute_effective_rank(weights) == approx(rank, nan_ok=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("units", [3, 100])
@pytest.mark.parametrize("value", [0.3, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_rank(value, units):
    stage = np.full((NUM_POINTS, units), value)
    assert participate(stage, ALL_POINTS) is None
