"""Disentanglement scores on planted codes, and DCI by scikit-learn."""

import numpy as np
import pytest
from pytest import approx
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from tests.metrics.planted import make_grid, make_space
from tfcomp.representations import disentanglement as scores

ORDER = np.random.default_rng(0).permutation(108)
INDEX = np.tile(make_grid(3, 4, 3), (3, 1)).astype(int)[ORDER]
ORDERED = [True, True, True]


def score(codes: np.ndarray, index: np.ndarray) -> dict[str, scores.Row]:
    sizes = index.max(axis=0) + 1
    space = make_space(*sizes)
    rows = scores.measure_codes(space, index, codes)
    return {row["score"]: row for row in rows}


@pytest.fixture
def no_boosting(monkeypatch):
    """DCI takes seconds; it has tests of its own."""
    dci = dict.fromkeys(scores.DCI, 0.5)
    monkeypatch.setattr(scores, "compute_dci", lambda codes, index: dci.copy())
    monkeypatch.setattr(scores, "NUM_PERMUTATIONS", 2)
    monkeypatch.setattr(scores, "NUM_VOTES", 300)


@pytest.mark.usefixtures("few_trees")
def test_a_code_for_each_factor_is_best(monkeypatch):
    monkeypatch.setattr(scores, "MAX_BOOSTED", 1)
    monkeypatch.setattr(scores, "NUM_PERMUTATIONS", 2)
    monkeypatch.setattr(scores, "NUM_VOTES", 300)

    pure = score(INDEX, INDEX)

    for row in pure.values():
        assert row["value"] == approx(1, abs=0.1)
        assert row["chance"] < 0.6
        assert row["n"] == len(INDEX)
    assert pure["dci_completeness"]["permutations"] == 1
    assert pure["mig"]["permutations"] == 2
    assert pure["mig"]["chance"] < 0.15
    assert pure["sap"]["chance"] < 0.1

    categorical = scores.compute_sap(INDEX.astype(float), INDEX, [False] * 3)
    assert 0.1 < categorical <= 1


@pytest.mark.usefixtures("no_boosting")
def test_noise_scores_at_its_chance_level(rng):
    """Many units: some of them seem to know a factor."""
    index = make_grid(8, 8, 4).astype(int)
    noise = rng.normal(size=(len(index), 32))

    rated = score(noise, index)

    factor_vae = rated["factor_vae"]
    mig = rated["mig"]
    assert factor_vae["value"] > 0.5
    assert factor_vae["chance"] == approx(factor_vae["value"], abs=0.1)
    assert mig["chance"] == approx(mig["value"], abs=0.03)
    # The chance level is the score of other noise.
    others = []
    for _ in range(2):
        other_noise = rng.normal(size=noise.shape)
        others.append(scores.compute_factor_vae(other_noise, index))
    assert factor_vae["chance"] == approx(np.mean(others), abs=0.06)


@pytest.mark.usefixtures("no_boosting")
@pytest.mark.parametrize(("repeats", "is_rated"), [(4, False), (5, True)])
def test_few_images_of_a_value_have_no_score(repeats, is_rated, rng):
    """Each of four values has 16 or 20 images."""
    grid = make_grid(4, 4).astype(int)
    index = np.tile(grid, (repeats, 1))
    noise = rng.normal(size=(len(index), 3))

    rated = score(noise, index)

    for row in rated.values():
        has_value = row["value"] is not None
        has_chance = row["chance"] is not None
        assert has_value == is_rated
        assert has_chance == is_rated
        assert row["n"] == 16 * repeats


def test_rotated_codes_are_told_apart_by_other_scores_alone():
    """FactorVAE's score asks for a unit that moves most with a factor."""
    turn = np.array(
        [
            [4, 3, 0],
            [-3, 4, 0],
            [0, 0, 5],
        ]
    )
    rotated = INDEX @ turn / 5

    mig = scores.compute_mig(rotated, INDEX)
    sap = scores.compute_sap(rotated, INDEX, ORDERED)
    factor_vae = scores.compute_factor_vae(rotated, INDEX)

    assert factor_vae == 1
    assert mig < 0.6
    assert sap < 0.7


def test_dci_by_scikit_learn(few_trees, rng):
    codes = rng.normal(size=(len(INDEX), 4))
    codes[:, :3] += INDEX
    factors = INDEX[:, :2].copy()
    factors[:, 1] //= 2

    dci = scores.compute_dci(codes, factors)

    cut = 3 * len(codes) // 4
    importance = []
    accuracy = []
    for labels in factors.T:
        model = few_trees(random_state=0)
        model.fit(codes[:cut], labels[:cut])
        importance.append(model.feature_importances_)
        accuracy.append(model.score(codes[cut:], labels[cut:]))
    weights = np.sum(importance, axis=0)
    disentangled = 1 - entropy(importance, base=2, axis=0)
    complete = 1 - entropy(importance, base=4, axis=1)
    expected = {
        "dci_disentanglement": weights @ disentangled / weights.sum(),
        "dci_completeness": complete.mean(),
        "dci_informativeness": np.mean(accuracy),
    }
    assert dci == approx(expected)


def test_the_gap_of_information_by_its_definition():
    """A code that is a factor, and one that has half of its information."""
    labels = np.repeat(np.arange(4), 10)
    half = labels // 2
    codes = np.stack([labels, half], axis=1).astype(float)
    index = labels[:, None]

    mig = scores.compute_mig(codes, index)
    sap = scores.compute_sap(codes, index, [True])

    correlation = np.corrcoef(labels, half)[0, 1]
    assert mig == approx(0.5)
    assert sap == approx(1 - correlation**2)


def test_information_by_scikit_learn(rng):
    labels = rng.integers(5, size=300)
    codes = {
        "related": labels + rng.integers(3, size=300),
        "unrelated": rng.integers(7, size=300),
        "equal": labels,
        "constant": np.zeros(300, int),
    }

    for code in codes.values():
        information = scores.compute_information(labels, code)
        assert information == mutual_info_score(labels, code)


def test_factors_that_vary_in_the_tested_rows_alone_have_no_score(rng):
    number = np.arange(16)
    is_last = number == 15
    index = np.column_stack([number % 4, is_last])
    codes = rng.normal(size=(16, 2))

    both = scores.compute_sap(codes, index, [True, True])
    first = scores.compute_sap(codes, index[:, :1], [True])
    mig = scores.compute_mig(codes, index)

    assert both == first
    assert np.isfinite(mig)


def test_two_images_have_no_score(rng):
    index = np.array([[0, 0], [1, 0]])
    codes = rng.normal(size=(2, 2))

    sap = scores.compute_sap(codes, index, [True, True])
    dci = scores.compute_dci(codes, index)

    assert np.isnan(sap)
    assert np.isnan(dci["dci_informativeness"])


def test_constant_codes():
    codes = np.zeros((len(INDEX), 2))

    factor_vae = scores.compute_factor_vae(codes, INDEX)
    mig = scores.compute_mig(codes, INDEX)

    assert factor_vae == 0
    assert mig == 0
