"""Probes and ranks of features that are informative, noise, or dead."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from tests.metrics.planted import hold_out, make_grid
from tfcomp.metrics import probes
from tfcomp.metrics.features import (
    compute_effective_rank,
    compute_participation,
    compute_rows,
    normalize_rows,
)
from tfcomp.metrics.probes import NO_SCORES, Scores, probe_rows

TARGETS = make_grid(14, 14)
IS_OOD = hold_out(TARGETS, 4, 9)


def compute_probe_scores(
    activations: np.ndarray,
    targets: np.ndarray,
    is_ood: np.ndarray,
    seed: int = 0,
) -> Scores:
    flat = np.reshape(activations, (len(is_ood), -1))
    return probe_rows(compute_rows(flat, is_ood), targets, is_ood, seed)


def make_noise(units: int, n: int = len(TARGETS)) -> np.ndarray:
    rng = np.random.default_rng(4)
    return rng.normal(size=(n, units)).astype(np.float32)


def make_linear(units: int) -> np.ndarray:
    weights = make_noise(units, n=2)
    return (TARGETS @ weights + 3).astype(np.float32)


def compute_slowly(features: np.ndarray, targets: np.ndarray) -> list[float]:
    """By scikit-learn, with a decomposition for every fold."""
    rows = normalize_rows(features.astype(float), IS_OOD)
    points, known = rows[~IS_OOD], targets[~IS_OOD]
    probe = RidgeCV(alphas=probes.PENALTIES)
    folds = KFold(probes.NUM_FOLDS, shuffle=True, random_state=3)
    found = cross_val_predict(probe, points, known, cv=folds)
    transferred = probe.fit(points, known).predict(rows[IS_OOD])
    return [r2_score(known, found), r2_score(targets[IS_OOD], transferred)]


@pytest.mark.parametrize("units", [3, 100, 160, 161, 500])
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_scores_are_those_of_separate_fits(units: int, noise: float) -> None:
    features = np.tanh(make_linear(units) / 9) + noise * make_noise(units)
    features = features.astype(float)
    expected = compute_slowly(features, TARGETS)
    found = compute_probe_scores(features, TARGETS, IS_OOD, seed=3)
    assert list(found.values()) == pytest.approx(expected, abs=1e-6)
    # Whatever the unit of a factor, though one penalty serves all.
    lopsided = features + 20 * make_noise(units) * TARGETS[:, :1]
    meters, mixed = (
        compute_probe_scores(lopsided, TARGETS * [1, unit], IS_OOD)
        for unit in (1, 1e-3)
    )
    assert mixed == pytest.approx(meters)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("units", [5, 500])
def test_constant_features_score_nothing(units: int, value: float) -> None:
    features = np.full((len(TARGETS), units), value, np.float32)
    scores = compute_probe_scores(features, TARGETS, IS_OOD)
    assert -0.1 < scores["probe_r2_id"] <= 0
    assert scores["probe_r2_ood"] <= 0


def test_what_has_no_score_and_what_is_left_out() -> None:
    features, targets = make_linear(20), TARGETS * [1, 0] + [0, 1]
    nowhere = np.zeros(len(TARGETS), bool)
    scores = compute_probe_scores(features, TARGETS, nowhere)
    assert scores["probe_r2_id"] > 0.999
    assert scores["probe_r2_ood"] is None
    few = np.arange(len(TARGETS)) >= 9
    assert compute_probe_scores(features, TARGETS, few) == NO_SCORES
    scores = compute_probe_scores(features, targets, IS_OOD)
    assert scores["probe_r2_ood"] > 0.999
    assert compute_probe_scores(features, targets[:, 1:], IS_OOD) == NO_SCORES
    features[3, 4] = np.nan
    assert compute_probe_scores(features, TARGETS, IS_OOD) == NO_SCORES


def test_means_that_rounding_has_left(rng: np.random.Generator) -> None:
    """Few units that explain everything, in a Gram matrix of float32."""
    targets = rng.normal(size=(60, 2))
    is_ood = np.arange(60) >= 50
    rows = np.hstack([1e3 + targets, rng.normal(size=(60, 70)) * 1e-4])
    gram = np.float32(compute_rows(rows, is_ood))
    gram = np.float64(gram + np.float32(1e-3))  # a mean that is not zero
    found = probe_rows(gram, targets, is_ood)
    assert found["probe_r2_id"] > 0.99 and found["probe_r2_ood"] > 0.99


@pytest.mark.parametrize("units", [5, 100, 500])
@pytest.mark.parametrize("features", [make_noise, make_linear])
def test_score_at_the_points_of_the_fit(features, units: int) -> None:
    """Least squares, for which noise of many units is perfect."""
    activations = features(units)
    nothing = np.zeros(len(TARGETS), bool)
    rows = compute_rows(activations, nothing)
    design = np.insert(activations.astype(float), 0, 1, axis=1)
    fitted = design @ np.linalg.lstsq(design, TARGETS, rcond=1e-4)[0]
    expected = r2_score(TARGETS, fitted)
    found = probes.score_fitted(rows, TARGETS)
    assert found == pytest.approx(expected, abs=1e-3)
    assert features is make_noise or found == pytest.approx(1, abs=1e-3)


# Ranks

NUM_POINTS = 60
EVERY_THIRD = np.arange(NUM_POINTS) % 3 == 0
ALL_POINTS = np.ones(NUM_POINTS, bool)


def participate(stage: np.ndarray, chosen: np.ndarray) -> float | None:
    return compute_participation(compute_rows(stage, EVERY_THIRD), chosen)


@pytest.mark.parametrize("units", [10, 30, 200])
def test_participation_equals_the_definition(
    units: int, rng: np.random.Generator
) -> None:
    stage = rng.normal(size=(NUM_POINTS, units)) * rng.uniform(size=units)
    for chosen in (ALL_POINTS, EVERY_THIRD, ~EVERY_THIRD):
        weights = np.linalg.eigvalsh(np.cov(stage[chosen].T))
        expected = weights.sum() ** 2 / (weights**2).sum()
        found = participate(1e-3 * stage + 1, chosen)
        assert found == pytest.approx(expected, rel=1e-3)


def test_effective_rank_of_known_weights() -> None:
    weights = [[2.0, 2.0, 0.0], [5.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0] * 3]
    found = compute_effective_rank(np.array(weights))
    np.testing.assert_allclose(found, [2.0, 1.0, 3.0, 0.0])
    assert np.isnan(compute_effective_rank(np.array([1.0, np.nan])))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.3, np.nan, np.inf])
def test_dead_and_diverged_stages_have_no_rank(value: float) -> None:
    for units in (3, 100):
        assert participate(np.full((60, units), value), ALL_POINTS) is None
