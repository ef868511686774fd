"""Disentanglement scores on planted codes, and DCI by scikit-learn."""

import numpy as np
import pytest
from pytest import approx
from scipy.stats import entropy
from sklearn.ensemble import GradientBoostingClassifier

from tests.metrics.planted import make_grid, make_space
from tfcomp.representations import disentanglement as scores

ORDER = np.random.default_rng(0).permutation(108)
INDEX = np.tile(make_grid(3, 4, 3), (3, 1)).astype(int)[ORDER]
ORDERED = [True, True, True]


def score(codes: np.ndarray, index: np.ndarray) -> dict[str, scores.Row]:
    sizes = index.max(axis=0) + 1
    rows = scores.measure_codes(make_space(*sizes), index, codes)
    return {row["score"]: row for row in rows}


@pytest.fixture
def no_boosting(monkeypatch) -> None:
    """DCI takes seconds; it has tests of its own."""
    monkeypatch.setattr(scores, "compute_dci", lambda codes, index: {})
    monkeypatch.setattr(scores, "NUM_PERMUTATIONS", 4)


def test_a_code_for_each_factor_is_best(monkeypatch) -> None:
    monkeypatch.setattr(scores, "MAX_BOOSTED", 1)
    monkeypatch.setattr(scores, "NUM_PERMUTATIONS", 2)

    pure = score(INDEX, INDEX)

    for row in pure.values():
        assert row["value"] == approx(1, abs=0.1)
        assert row["chance"] < 0.6
        assert row["n"] == len(INDEX)
    assert pure["dci_completeness"]["permutations"] == 1
    assert pure["mig"]["permutations"] == 2

    categorical = scores.compute_sap(INDEX.astype(float), INDEX, [False] * 3)
    assert 0.1 < categorical <= 1


def test_mixed_codes_are_worse_and_noise_is_none(rng) -> None:
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    mixed = INDEX @ rotation
    assert scores.compute_mig(mixed, INDEX) < 0.85
    assert scores.compute_sap(mixed, INDEX, ORDERED) < 0.85

    noise = rng.normal(size=INDEX.shape)
    assert scores.compute_mig(noise, INDEX) < 0.15
    assert scores.compute_sap(noise, INDEX, ORDERED) < 0.1
    assert scores.compute_factor_vae(noise, INDEX) < 0.6


@pytest.mark.usefixtures("no_boosting")
def test_noise_scores_at_its_chance_level(rng) -> None:
    """Many units: some of them seem to know a factor."""
    index = make_grid(8, 8, 4).astype(int)
    noise = rng.normal(size=(len(index), 32))

    rated = score(noise, index)

    factor_vae = rated["factor_vae"]
    assert factor_vae["value"] > 0.5
    assert factor_vae["chance"] == approx(factor_vae["value"], abs=0.1)
    assert rated["mig"]["chance"] == approx(rated["mig"]["value"], abs=0.03)
    # The chance level is that of other draws of noise.
    draws = [rng.normal(size=noise.shape) for _ in range(3)]
    values = [scores.compute_factor_vae(draw, index) for draw in draws]
    assert factor_vae["chance"] == approx(np.mean(values), abs=0.06)


@pytest.mark.usefixtures("no_boosting")
@pytest.mark.parametrize(("repeats", "is_rated"), [(4, False), (5, True)])
def test_few_images_of_a_value_have_no_score(repeats, is_rated, rng) -> None:
    """Each of four values has 16 or 20 images."""
    index = np.tile(make_grid(4, 4).astype(int), (repeats, 1))

    rated = score(rng.normal(size=(len(index), 3)), index)

    for row in rated.values():
        assert (row["value"] is not None) == is_rated
        assert (row["chance"] is not None) == is_rated
        assert row["n"] == 16 * repeats


def test_rotated_codes_are_told_apart_by_other_scores_alone() -> None:
    """FactorVAE's score asks for a unit that moves most with a factor."""
    turn = np.array([[4, 3, 0], [-3, 4, 0], [0, 0, 5]]) / 5
    rotated = INDEX @ turn

    assert scores.compute_factor_vae(rotated, INDEX) == 1
    assert scores.compute_mig(rotated, INDEX) < 0.6
    assert scores.compute_sap(rotated, INDEX, ORDERED) < 0.7


def test_dci_by_scikit_learn(rng) -> None:
    codes = rng.normal(size=(len(INDEX), 4))
    codes[:, :3] += INDEX
    factors = INDEX[:, :2]

    dci = scores.compute_dci(codes, factors)

    cut = 3 * len(codes) // 4
    importance = []
    accuracy = []
    for labels in factors.T:
        model = GradientBoostingClassifier(random_state=0)
        model.fit(codes[:cut], labels[:cut])
        importance.append(model.feature_importances_)
        accuracy.append(model.score(codes[cut:], labels[cut:]))
    weights = np.sum(importance, axis=0)
    disentangled = 1 - entropy(
        importance,
        base=2,
        axis=0,
    )
    complete = 1 - entropy(
        importance,
        base=4,
        axis=1,
    )
    expected = {
        "dci_disentanglement": weights @ disentangled / weights.sum(),
        "dci_completeness": complete.mean(),
        "dci_informativeness": np.mean(accuracy),
    }
    assert dci == approx(expected)


def test_the_gap_of_information_by_its_definition() -> None:
    """A code that is a factor, and one that has half of its information."""
    labels = np.repeat(np.arange(4), 10)
    half = labels // 2
    codes = np.stack([labels, half], axis=1).astype(float)
    index = labels[:, None]

    assert scores.compute_mig(codes, index) == approx(0.5)
    correlation = np.corrcoef(labels, half)[0, 1]
    sap = scores.compute_sap(codes, index, [True])
    assert sap == approx(1 - correlation**2)


def test_factors_that_vary_in_the_tested_rows_alone_have_no_score(rng) -> None:
    labels = np.arange(16) % 4
    is_last = np.arange(16) == 15
    index = np.stack([labels, is_last], axis=1).astype(int)
    codes = rng.normal(size=(16, 2))

    both = scores.compute_sap(codes, index, [True, True])
    first = scores.compute_sap(codes, index[:, :1], [True])
    assert both == first
    assert np.isfinite(scores.compute_mig(codes, index))

    # Two images.
    assert np.isnan(scores.compute_sap(codes[:2], index[:2], [True, True]))
    dci = scores.compute_dci(codes[:2], index[:2])
    assert np.isnan(dci["dci_informativeness"])


def test_constant_codes() -> None:
    codes = np.zeros((len(INDEX), 2))

    assert scores.compute_factor_vae(codes, INDEX) == 0
    assert scores.compute_mig(codes, INDEX) == 0
