"""Disentanglement scores on planted codes, and DCI by scikit-learn."""

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.ensemble import GradientBoostingClassifier

from tfcomp.representations import disentanglement as dis

SIZES = (3, 4, 3)
INDEX = np.stack(np.meshgrid(*map(range, SIZES), indexing="ij"), -1)
INDEX = np.tile(INDEX.reshape(-1, 3), (3, 1))
INDEX = INDEX[np.random.default_rng(0).permutation(len(INDEX))]
ORDERED = [True, True, True]


def test_planted_codes() -> None:
    """A code for each factor is best, mixed codes are worse, noise is none."""
    rng = np.random.default_rng(1)
    mixed = INDEX @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    noise = rng.normal(size=INDEX.shape)
    pure = dis.measure_codes(INDEX, INDEX, ORDERED)
    for name, value in pure.items():
        assert value == pytest.approx(1, abs=0.1), name
    categorical = dis.compute_sap(INDEX.astype(float), INDEX, [False] * 3)
    assert 0.1 < categorical <= 1
    assert dis.compute_mig(mixed, INDEX) < pure["mig"] - 0.15
    assert dis.compute_sap(mixed, INDEX, ORDERED) < pure["sap"] - 0.15
    assert dis.compute_mig(noise, INDEX) < 0.15
    assert dis.compute_sap(noise, INDEX, ORDERED) < 0.1
    assert dis.compute_factor_vae(noise, INDEX) < 0.6


def test_dci_by_scikit_learn() -> None:
    noise = np.random.default_rng(3).normal(size=(len(INDEX), 4))
    codes = np.hstack([INDEX + noise[:, :3], noise[:, 3:]])
    cut = 3 * len(codes) // 4
    columns, accuracy = [], []
    for labels in INDEX[:, :2].T:
        model = GradientBoostingClassifier(random_state=0)
        model.fit(codes[:cut], labels[:cut])
        columns.append(model.feature_importances_)
        accuracy.append(np.mean(model.predict(codes[cut:]) == labels[cut:]))
    importance = np.stack(columns, axis=1)  # [codes, factors]
    disentangled = [1 - entropy(row, base=2) for row in importance]
    complete = [1 - entropy(column, base=4) for column in importance.T]
    weight = importance.sum(axis=1) / importance.sum()
    expected = {
        "dci_disentanglement": weight @ disentangled,
        "dci_completeness": np.mean(complete),
        "dci_informativeness": np.mean(accuracy),
    }
    found = dis.compute_dci(codes, INDEX[:, :2])
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_gap_of_information_by_its_definition() -> None:
    """A code that is a factor, and one that has half of its information."""
    labels = np.repeat(np.arange(4), 10)[:, None]
    codes = np.hstack([labels, labels // 2]).astype(float)
    assert dis.compute_mig(codes, labels) == pytest.approx(0.5)
    assert dis.compute_sap(codes, labels, [True]) == pytest.approx(
        1 - np.corrcoef(labels.T, labels.T // 2)[0, 1] ** 2
    )


def test_factors_that_vary_in_the_tested_rows_alone_have_no_score() -> None:
    index = np.stack([np.arange(8) % 4, np.zeros(8, int)], axis=1)
    index[np.random.default_rng(0).permutation(8)[-1], 1] = 1
    codes = np.random.default_rng(1).normal(size=(8, 2))
    found = dis.measure_codes(codes, index, [True, False])
    rows = np.random.default_rng(0).permutation(8)
    one = dis.compute_sap(codes[rows], index[rows, :1], [True])
    assert found["sap"] == pytest.approx(one) and found["mig"] is not None
    few = dis.measure_codes(codes[:2], index[:2], [True, False])  # two images
    assert few["sap"] is few["dci_informativeness"] is None


def test_constant_codes() -> None:
    codes = np.zeros((len(INDEX), 2))
    assert dis.compute_factor_vae(codes, INDEX) == 0
    assert dis.compute_sap(codes, INDEX, [True, False, True]) == 0
    assert dis.compute_mig(codes, INDEX) == 0
    # A level that only occurs where a machine is tested cannot be learned.
    rare = INDEX.copy()
    rare[:, 0] = np.arange(len(rare)) == len(rare) - 1
    assert dis.compute_sap(codes, rare, [False, False, True]) == 0
