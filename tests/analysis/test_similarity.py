"""Similarity of representations against definitions and SciPy."""

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from tfcomp.analysis.similarity import (
    Shape,
    compare_shapes,
    make_shape,
    summarize_similarity,
)


def draw(seed: int, units: int, points: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(points, units))


def shape(features: np.ndarray) -> Shape:
    return make_shape(features @ features.T)


def slow_hsic(first: np.ndarray, second: np.ndarray) -> float:
    """The unbiased estimator, equation 5 of Song et al. (2012)."""
    k, m = (gram - np.diag(np.diag(gram)) for gram in (first, second))
    n, ones = len(k), np.ones(len(k))
    total = np.trace(k @ m)
    total += (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (ones @ k @ m @ ones)) / (n * (n - 3))


def test_values_equal_independent_definitions() -> None:
    x = draw(0, 7)
    y = np.tanh(x @ draw(1, 5, 7)) + 0.3 * draw(2, 5)
    found = compare_shapes(shape(x), shape(y))
    grams = x @ x.T, y @ y.T
    both, one, other = (
        slow_hsic(grams[i], grams[j]) for i, j in ((0, 1), (0, 0), (1, 1))
    )
    assert found["cka"] == pytest.approx(both / np.sqrt(one * other))
    wide = np.pad(y, [(0, 0), (0, 2)])  # SciPy wants equal sizes
    disparity = procrustes(x, wide)[2]
    expected = np.sqrt(2 - 2 * np.sqrt(1 - disparity))
    assert found["procrustes"] == pytest.approx(expected)
    expected = spearmanr(pdist(x), pdist(y)).statistic
    assert found["rsa"] == pytest.approx(expected)


def test_rotations_shifts_and_scales_change_nothing() -> None:
    x = draw(0, 6)
    turn, _ = np.linalg.qr(draw(1, 9, 9))
    moved = 3 * np.pad(x, [(0, 0), (0, 3)]) @ turn + 5
    found = summarize_similarity(shape(x), shape(moved))
    assert found["cka"] == pytest.approx(1)
    assert found["procrustes"] == pytest.approx(0, abs=1e-6)
    assert found["rsa"] == pytest.approx(1)
    assert {found[f"{name}_p"] for name in ("cka", "procrustes", "rsa")} == {
        0.05
    }


@pytest.mark.parametrize("units", [5, 500])
def test_random_features_are_not_alike(units: int) -> None:
    found = [
        compare_shapes(shape(draw(2 * i, units)), shape(draw(2 * i + 1, units)))
        for i in range(20)
    ]
    cka = [numbers["cka"] for numbers in found]
    # Within three standard errors; the biased one has .9 of 500 units.
    error = np.std(cka) / np.sqrt(len(cka))
    assert abs(np.mean(cka)) < 3 * error < 0.05
    null = summarize_similarity(shape(draw(0, units)), shape(draw(1, units)))
    assert null["procrustes"] == pytest.approx(null["procrustes_null"], abs=0.1)
    assert null["cka_null"] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(
    "gram", [np.zeros((8, 8)), np.full((8, 8), np.nan), np.eye(3)]
)
def test_what_has_no_shape_has_no_similarity(gram: np.ndarray) -> None:
    other = shape(draw(0, 4, len(gram)))
    found = summarize_similarity(make_shape(gram), other)
    assert set(found.values()) == {None}
