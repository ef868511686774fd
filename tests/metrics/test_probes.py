"""Probes and ranks of features that are informative, noise, or dead."""

import numpy as np
import pytest
from pytest import approx
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from tests.metrics.planted import hold_out, make_grid
from tfcomp.metrics import probes
from tfcomp.metrics.features import (
    Scores,
    compute_effective_rank,
    compute_participation,
    compute_rows,
    normalize_rows,
)
from tfcomp.metrics.probes import NO_SCORES, probe_rows

TARGETS = make_grid(14, 14)
IS_OOD = hold_out(TARGETS, 4, 9)
NOTHING = np.zeros(len(TARGETS), bool)


def probe(
    activations: np.ndarray,
    targets: np.ndarray = TARGETS,
    is_ood: np.ndarray = IS_OOD,
    seed: int = 0,
) -> Scores:
    rows = compute_rows(activations, is_ood)
    return probe_rows(rows, targets, is_ood, seed)


def make_noise(units: int, count: int = len(TARGETS)) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(count, units))


def make_linear(units: int) -> np.ndarray:
    return TARGETS @ make_noise(units, count=2) + 3


@pytest.mark.parametrize("units", [3, 100, 160, 161, 500])
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_scores_are_those_of_separate_fits(units, noise) -> None:
    """By scikit-learn, with a decomposition for every fold."""
    activations = np.tanh(make_linear(units) / 9) + noise * make_noise(units)
    rows = normalize_rows(activations, IS_OOD)
    known = rows[~IS_OOD]
    truth = TARGETS[~IS_OOD]
    ridge = RidgeCV(alphas=probes.PENALTIES)
    folds = KFold(
        probes.NUM_FOLDS,
        shuffle=True,
        random_state=3,
    )
    out_of_fold = cross_val_predict(ridge, known, truth, cv=folds)
    transferred = ridge.fit(known, truth).predict(rows[IS_OOD])

    scores = probe(activations, seed=3)
    expected = {
        "probe_r2_id": r2_score(truth, out_of_fold),
        "probe_r2_ood": r2_score(TARGETS[IS_OOD], transferred),
    }
    assert scores == approx(expected, abs=1e-6)


def test_units_of_factors_change_nothing() -> None:
    """Though one penalty serves all factors."""
    noise = 20 * make_noise(100)
    lopsided = make_linear(100) + noise * (1 + TARGETS[:, :1])
    expected = approx(probe(lopsided))

    assert probe(lopsided, TARGETS * [1, 1e-3]) == expected


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("units", [5, 500])
def test_constant_features_score_nothing(units, value) -> None:
    scores = probe(np.full((len(TARGETS), units), value, np.float32))
    assert -0.1 < scores["probe_r2_id"] <= 0
    assert scores["probe_r2_ood"] <= 0


def test_what_has_no_score_and_what_is_left_out() -> None:
    features = make_linear(20)
    scores = probe(features, is_ood=NOTHING)

    assert scores["probe_r2_id"] > 0.999
    assert scores["probe_r2_ood"] is None

    few = np.arange(len(TARGETS)) >= 9
    assert probe(features, is_ood=few) == NO_SCORES

    targets = TARGETS * [1, 0]  # one does not vary
    assert probe(features, targets)["probe_r2_ood"] > 0.999
    assert probe(features, targets[:, 1:]) == NO_SCORES

    features[3, 4] = np.nan
    assert probe(features) == NO_SCORES


def test_means_that_rounding_has_left(rng) -> None:
    """Few units that explain everything, in a Gram matrix of float32."""
    targets = rng.normal(size=(60, 2))
    is_ood = np.arange(60) >= 50
    rows = np.hstack([1e3 + targets, rng.normal(size=(60, 70)) * 1e-4])
    gram = np.float32(compute_rows(rows, is_ood))
    gram = np.float64(gram + np.float32(1e-3))  # a mean that is not zero
    scores = probe_rows(gram, targets, is_ood)

    assert min(scores.values()) > 0.99


# Ranks

NUM_POINTS = 60
EVERY_THIRD = np.arange(NUM_POINTS) % 3 == 0
ALL_POINTS = np.ones(NUM_POINTS, bool)


def participate(stage: np.ndarray, points: np.ndarray) -> float | None:
    return compute_participation(compute_rows(stage, EVERY_THIRD), points)


@pytest.mark.parametrize("points", [ALL_POINTS, EVERY_THIRD, ~EVERY_THIRD])
@pytest.mark.parametrize("units", [10, 30, 200])
def test_participation_equals_the_definition(units, points, rng) -> None:
    stage = rng.normal(size=(NUM_POINTS, units)) * rng.uniform(size=units)
    weights = np.linalg.eigvalsh(np.cov(stage[points].T))
    expected = weights.sum() ** 2 / (weights**2).sum()
    ratio = participate(1e-3 * stage + 1, points)

    assert ratio == approx(expected, rel=1e-3)


def test_effective_rank_of_known_weights() -> None:
    weights = [[2.0, 2.0, 0.0], [5.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0] * 3]
    ranks = compute_effective_rank(np.array(weights))

    np.testing.assert_allclose(ranks, [2.0, 1.0, 3.0, 0.0])
    assert np.isnan(compute_effective_rank(np.array([1.0, np.nan])))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("units", [3, 100])
@pytest.mark.parametrize("value", [0.3, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_rank(value, units) -> None:
    stage = np.full((NUM_POINTS, units), value)
    assert participate(stage, ALL_POINTS) is None
