"""Disentanglement scores on planted codes, and DCI by scikit-learn."""

import numpy as np
from pytest import approx
from scipy.stats import entropy
from sklearn.ensemble import GradientBoostingClassifier

from tests.metrics.planted import make_grid, make_space
from tfcomp.representations import scores

ORDER = np.random.default_rng(0).permutation(108)
INDEX = np.tile(make_grid(3, 4, 3), (3, 1)).astype(int)[ORDER]
ORDERED = [True, True, True]


def score(codes: np.ndarray, index: np.ndarray) -> dict[str, float | None]:
    space = make_space(*[4] * index.shape[1])
    rows = scores.measure_codes(space, index, codes)
    return {row["score"]: row["value"] for row in rows}


def test_a_code_for_each_factor_is_best() -> None:
    pure = score(INDEX, INDEX)
    assert pure == approx(dict.fromkeys(pure, 1), abs=0.1)

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
    order = np.random.default_rng(0).permutation(8)
    labels = np.arange(8) % 4
    rare = np.arange(8) == order[-1]
    index = np.stack([labels, rare], axis=1).astype(int)
    codes = rng.normal(size=(8, 2))

    both = score(codes, index)
    few = score(codes[:2], index[:2])  # two images

    first = scores.compute_sap(codes[order], index[order, :1], [True])
    assert both["sap"] == approx(first)
    assert both["mig"] is not None
    assert few["sap"] is None
    assert few["dci_informativeness"] is None


def test_constant_codes() -> None:
    codes = np.zeros((len(INDEX), 2))

    assert scores.compute_factor_vae(codes, INDEX) == 0
    assert scores.compute_mig(codes, INDEX) == 0
