"""Probes on features that are informative, noise, or dead."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from tests.analysis.planted import hold_out, make_grid
from tfcomp.analysis import probes
from tfcomp.analysis.features import compute_gram, compute_rows, normalize_rows
from tfcomp.analysis.probes import Scores, probe_rows

TARGETS = make_grid(14, 14)
IS_OOD = hold_out(TARGETS, 4, 9)
NO_SCORES = {"probe_r2_id": None, "probe_r2_ood": None}


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


def rotate_features(activations: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Normalized activations, in at most as many dimensions as points."""
    if activations.shape[1] <= len(activations):
        return normalize_rows(activations, is_ood)
    squares, axes = np.linalg.eigh(compute_gram(activations, is_ood))
    return axes * np.sqrt(np.maximum(squares, 0))


def compute_slowly(features: np.ndarray, targets: np.ndarray) -> list[float]:
    """By scikit-learn, with a decomposition for every fold."""
    rows = normalize_rows(features.astype(float), IS_OOD)
    points, known = rows[~IS_OOD], targets[~IS_OOD]
    probe = RidgeCV(alphas=probes.PENALTIES)
    folds = KFold(probes.NUM_FOLDS, shuffle=True, random_state=3)
    found = cross_val_predict(probe, points, known, cv=folds)
    transferred = probe.fit(points, known).predict(rows[IS_OOD])
    return [r2_score(known, found), r2_score(targets[IS_OOD], transferred)]


@pytest.mark.parametrize("units", [3, 30, 100, 160, 161, 500])
@pytest.mark.parametrize("noise", [0.0, 0.1, 20.0])
def test_scores_are_those_of_separate_fits(units: int, noise: float) -> None:
    features = np.tanh(make_linear(units) / 9) + noise * make_noise(units)
    features = features.astype(float)
    expected = compute_slowly(features, TARGETS)
    found = compute_probe_scores(features, TARGETS, IS_OOD, seed=3)
    assert list(found.values()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("units", [2, 50, 1000])
def test_linear_features_score_one(units: int) -> None:
    scores = compute_probe_scores(make_linear(units), TARGETS, IS_OOD)
    assert scores["probe_r2_id"] > 0.999
    assert scores["probe_r2_ood"] > 0.999
    assert all(type(score) is float for score in scores.values())


@pytest.mark.parametrize("units", [10, 150, 3000])
def test_noise_scores_nothing(units: int) -> None:
    """With 3000 units an in-sample fit of noise is perfect."""
    scores = compute_probe_scores(make_noise(units), TARGETS, IS_OOD)
    assert scores["probe_r2_id"] <= 0.05
    assert scores["probe_r2_ood"] <= 0.05


def test_noise_fits_its_own_points() -> None:
    features = rotate_features(make_noise(3000), IS_OOD)
    probe = Ridge(alpha=1e-4).fit(features, TARGETS)
    assert probe.score(features, TARGETS) > 0.999


def test_one_hot_features_do_not_transfer() -> None:
    """A unit for each combination knows the ID points and nothing else."""
    features = 100 * np.eye(len(TARGETS), dtype=np.float32)
    scores = compute_probe_scores(features, TARGETS, IS_OOD)
    assert scores["probe_r2_ood"] <= 0.05


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("units", [5, 500])
def test_constant_features_score_nothing(units: int, value: float) -> None:
    features = np.full((len(TARGETS), units), value, np.float32)
    scores = compute_probe_scores(features, TARGETS, IS_OOD)
    assert -0.1 < scores["probe_r2_id"] <= 0
    assert scores["probe_r2_ood"] <= 0


def test_scale_and_offset_do_not_matter() -> None:
    features = make_linear(300) + make_noise(300)
    expected = compute_probe_scores(features, TARGETS, IS_OOD)
    found = compute_probe_scores(1e-3 * features + 1, TARGETS, IS_OOD)
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("units", [20, 5000])
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_rotated_ridge_equals_raw_ridge(units: int, alpha: float) -> None:
    raw = make_noise(units) + 2
    features = rotate_features(raw, IS_OOD)
    assert features.shape == (len(TARGETS), min(units, len(TARGETS)))
    centered = raw - raw[~IS_OOD].mean(axis=0, dtype=np.float64)
    scale = np.sqrt((centered[~IS_OOD] ** 2).sum(axis=1).mean())
    rotated = Ridge(alpha=alpha).fit(features[~IS_OOD], TARGETS[~IS_OOD])
    expected = Ridge(alpha=alpha * scale**2).fit(
        raw[~IS_OOD].astype(np.float64), TARGETS[~IS_OOD]
    )
    np.testing.assert_allclose(
        rotated.predict(features), expected.predict(raw), atol=1e-4
    )


def test_folds_depend_on_the_seed_only() -> None:
    features = make_linear(30) + 20 * make_noise(30)
    first = compute_probe_scores(features, TARGETS, IS_OOD, seed=1)
    again = compute_probe_scores(features, TARGETS, IS_OOD, seed=1)
    other = compute_probe_scores(features, TARGETS, IS_OOD, seed=2)
    assert first == again
    assert first["probe_r2_id"] != other["probe_r2_id"]
    assert first["probe_r2_ood"] == other["probe_r2_ood"]


def test_images_are_flattened_and_one_target_is_enough() -> None:
    features = make_linear(60).reshape(-1, 3, 4, 5)
    scores = compute_probe_scores(features, TARGETS[:, :1], IS_OOD)
    assert scores["probe_r2_id"] > 0.999


def test_too_few_points_give_none() -> None:
    features = make_linear(5)
    nowhere = np.zeros(len(TARGETS), bool)
    scores = compute_probe_scores(features, TARGETS, nowhere)
    assert scores["probe_r2_id"] > 0.999
    assert scores["probe_r2_ood"] is None
    few = np.arange(len(TARGETS)) >= 9
    assert compute_probe_scores(features, TARGETS, few) == NO_SCORES


def test_a_factor_that_does_not_vary_is_left_out() -> None:
    features, targets = make_linear(20), TARGETS * [1, 0] + [0, 1]
    scores = compute_probe_scores(features, targets, IS_OOD)
    assert scores["probe_r2_ood"] > 0.999
    assert compute_probe_scores(features, targets[:, 1:], IS_OOD) == NO_SCORES


def test_a_diverged_model_gives_none() -> None:
    features = make_linear(20)
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
