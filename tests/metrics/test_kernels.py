"""Gram matrices, kernels and similarities against loops; planted ones."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.metrics import kernels

GRID = make_grid(28, 28)
IS_OOD = hold_out(GRID, 6, 22)
SMALL = make_grid(6, 7)
OUTPUTS = np.random.default_rng(3).uniform(size=(12, 5, 6, 1))


def cosine(
    a: np.ndarray,
    b: np.ndarray,
) -> float:
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def overlap(
    a: np.ndarray,
    b: np.ndarray,
) -> float:
    both = (a > 0.5) & (b > 0.5)
    either = (a > 0.5) | (b > 0.5)
    return both.sum() / either.sum()


def distance(
    a: np.ndarray,
    b: np.ndarray,
) -> float:
    return np.linalg.norm(a - b)


GRAMS = {
    kernels.compute_cosine_gram: cosine,
    kernels.compute_distance_gram: distance,
    kernels.compute_overlap_gram: overlap,
}


@pytest.mark.parametrize("compute", GRAMS)
def test_grams_equal_double_loops(compute) -> None:
    flat = OUTPUTS.reshape(12, -1)
    kept = OUTPUTS.copy()
    found = compute(OUTPUTS)
    for i, j in np.ndindex(found.shape):
        expected = GRAMS[compute](flat[i], flat[j])
        assert found[i, j] == approx(expected, abs=1e-6)
    assert_array_equal(OUTPUTS, kept)


def test_distances_resolve_close_outputs_on_a_white_background() -> None:
    bright = np.zeros((2, 28, 28))
    bright[1, 4, 4] = 1e-5
    distances = kernels.compute_distance_gram(1000 - bright)
    assert distances[0, 1] == approx(1e-5, rel=1e-4)
    assert (np.diagonal(distances) == 0).all()


def test_blank_outputs_resemble_nothing() -> None:
    outputs = OUTPUTS.copy()
    outputs[2] = 0
    for compute in (kernels.compute_cosine_gram, kernels.compute_overlap_gram):
        gram = compute(outputs)
        assert not gram[2].any()
        assert not gram[:, 2].any()
        assert gram[0, 0] == approx(1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("compute", GRAMS)
def test_broken_outputs_are_nan_and_spoil_no_other(compute, value) -> None:
    outputs = OUTPUTS.copy()
    outputs[4, 0, 0] = value
    gram = compute(outputs)
    assert np.isnan(gram[4]).all()
    assert np.isnan(gram[:, 4]).all()
    rest = np.delete(np.delete(gram, 4, axis=0), 4, axis=1)
    expected = compute(np.delete(outputs, 4, axis=0))
    assert_allclose(rest, expected, atol=1e-6)


@pytest.mark.parametrize("sizes", [(5, 4), (3, 4, 2), (6,)])
def test_ideal_kernels_equal_double_loops(sizes) -> None:
    grid = make_grid(*sizes)
    agrees = np.array([[p == q for q in grid] for p in grid])  # [n, n, F]
    for name, expected in {
        "factorized": agrees.mean(axis=2),
        "conjunctive": agrees.all(axis=2),
    }.items():
        kernel = kernels.IDEAL_KERNELS[name](grid)
        assert_allclose(kernel, expected)


def test_true_bumps_resemble_both_ideal_kernels() -> None:
    """Published settings: cosines, centered, over OOD points only."""
    cosines = kernels.compute_cosine_gram(make_bumps(GRID, 28))
    scores = kernels.summarize_alignment(cosines, GRID, IS_OOD)
    assert scores["alignment_factorized"] == approx(0.41, abs=0.005)
    assert scores["alignment_conjunctive"] == approx(0.42, abs=0.005)
    scores = kernels.summarize_alignment(
        cosines,
        GRID,
        IS_OOD,
        width=1.0,
    )
    assert scores["alignment_conjunctive"] > 0.999
    assert scores["alignment_factorized"] < 0.7


@pytest.mark.parametrize("scale", [1.0, -1e-9, 1e9])
def test_alignment_equals_its_definition(scale, rng) -> None:
    first, second = rng.normal(size=(2, 7, 7))
    centering = np.eye(7) - 1 / 7
    a = centering @ first @ centering
    b = centering @ second @ centering
    product = sum(a[i, j] * b[i, j] for i, j in np.ndindex(a.shape))
    expected = product / np.sqrt((a**2).sum() * (b**2).sum())
    found = kernels.compute_alignment(scale * first, second)
    assert found == approx(np.sign(scale) * expected)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_degenerate_kernels_agree_with_nothing(value, rng) -> None:
    kernel = kernels.make_factorized_kernel(SMALL)
    constant = np.full(kernel.shape, value)
    noise = 1 + 1e-7 * rng.normal(size=kernel.shape)
    by_row = constant + rng.normal(size=(len(kernel), 1))
    for other in (constant, value * noise, by_row):
        assert kernels.compute_alignment(other, kernel) == 0


def test_values_that_are_not_finite_and_no_points_give_none() -> None:
    gram = kernels.make_factorized_kernel(SMALL)
    gram[0, 0] = np.nan
    assert math.isnan(kernels.compute_alignment(gram, gram))
    rest = kernels.summarize_alignment(gram, SMALL, np.arange(1, 42))
    assert rest["alignment_factorized"] == approx(1)
    nowhere = np.zeros(42, bool)
    # Centered, all kernels of two points are equal up to a factor.
    pair = [5, 6]
    for rows in (np.arange(42), nowhere, pair):
        for summarize in (
            kernels.summarize_alignment,
            kernels.summarize_best_alignment,
        ):
            assert set(summarize(gram, SMALL, rows).values()) == {None}


# Similarity of representations


def sample(
    seed: int,
    units: int,
    points: int = 40,
) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(points, units))


def shape(features: np.ndarray) -> kernels.Shape:
    return kernels.make_shape(features @ features.T)


def slow_hsic(
    first: np.ndarray,
    second: np.ndarray,
) -> float:
    """The unbiased estimator, equation 5 of Song et al. (2012)."""
    k = first - np.diag(np.diag(first))
    m = second - np.diag(np.diag(second))
    n = len(k)
    product = k @ m
    total = np.trace(product)
    total += k.sum() * m.sum() / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * product.sum()) / (n * (n - 3))


def test_values_equal_independent_definitions() -> None:
    x = sample(0, 7)
    y = np.tanh(x @ sample(1, 5, 7)) + 0.3 * sample(2, 5)
    k = x @ x.T
    m = y @ y.T
    hsic = slow_hsic(k, m)
    wide = np.pad(y, [(0, 0), (0, 2)])  # SciPy wants equal sizes
    disparity = procrustes(x, wide)[2]
    expected = {
        "cka": hsic / np.sqrt(slow_hsic(k, k) * slow_hsic(m, m)),
        "procrustes": np.sqrt(2 - 2 * np.sqrt(1 - disparity)),
        "rsa": spearmanr(pdist(x), pdist(y)).statistic,
    }
    assert kernels.compare_shapes(shape(x), shape(y)) == approx(expected)
    summary = kernels.summarize_similarity(shape(x), shape(y))
    for name in expected:
        assert summary[f"{name}_p"] == 0.05


@pytest.mark.parametrize("units", [5, 500])
def test_random_features_are_not_alike(units) -> None:
    cka = []
    for seed in range(20):
        first = shape(sample(2 * seed, units))
        second = shape(sample(2 * seed + 1, units))
        cka.append(kernels.compare_shapes(first, second)["cka"])
    # Within three standard errors; the biased one has .9 of 500 units.
    error = np.std(cka) / np.sqrt(len(cka))
    assert abs(np.mean(cka)) < 3 * error < 0.05
    null = kernels.summarize_similarity(first, second)
    assert null["procrustes"] == approx(null["procrustes_null"], abs=0.1)
    assert null["cka_null"] == approx(0, abs=0.05)


@pytest.mark.parametrize(
    "gram",
    [np.zeros((8, 8)), np.full((8, 8), np.nan), np.eye(3)],
)
def test_what_has_no_shape_has_no_similarity(gram) -> None:
    other = shape(sample(0, 4, len(gram)))
    summary = kernels.summarize_similarity(kernels.make_shape(gram), other)
    assert set(summary.values()) == {None}
