"""Gram matrices, kernels and similarities against loops; planted ones."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from tests.metrics.planted import hold_out, make_bumps, make_grid
from tfcomp.metrics import kernels, similarity
from tfcomp.metrics.kernels import compute_cosine_gram
from tfcomp.metrics.similarity import summarize_similarity

GRID = make_grid(28, 28)
IS_OOD = hold_out(GRID, 6, 22)
SOME = np.random.default_rng(0).permutation(GRID)[:60]


def make_outputs(n: int = 12) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.uniform(size=(n, 5, 6, 1)).astype(np.float32)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    return ((a > 0.5) & (b > 0.5)).sum() / ((a > 0.5) | (b > 0.5)).sum()


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return np.linalg.norm(a - b)


# Each with its definition and its tolerance.
GRAMS = {
    kernels.compute_cosine_gram: (cosine, 1e-6),
    kernels.compute_distance_gram: (distance, 1e-7),
    kernels.compute_overlap_gram: (overlap, 0),
}


@pytest.mark.parametrize("compute", GRAMS)
def test_grams_equal_double_loops(compute: Callable) -> None:
    outputs = make_outputs().astype(np.float64)
    flat, kept = outputs.reshape(len(outputs), -1), outputs.copy()
    define, atol = GRAMS[compute]
    expected = [[define(a, b) for b in flat] for a in flat]
    np.testing.assert_allclose(compute(outputs), expected, atol=atol)
    np.testing.assert_array_equal(outputs, kept)


def test_distances_resolve_close_outputs_on_a_white_background() -> None:
    bright = np.zeros((2, 28, 28))
    bright[1, 4, 4] = 1e-5
    distances = kernels.compute_distance_gram(1000 - bright)
    assert distances[0, 1] == pytest.approx(1e-5, rel=1e-4)
    assert (np.diagonal(distances) == 0).all()


def test_blank_outputs_resemble_nothing() -> None:
    outputs = make_outputs()
    outputs[2] = 0
    for compute in (kernels.compute_cosine_gram, kernels.compute_overlap_gram):
        found = compute(outputs)
        assert (found[2] == 0).all() and (found[:, 2] == 0).all()
        assert found[0, 0] == pytest.approx(1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("compute", GRAMS)
def test_broken_outputs_are_nan_and_spoil_no_other(
    compute: Callable[[np.ndarray], np.ndarray], value: float
) -> None:
    outputs = make_outputs()
    expected = compute(np.delete(outputs, 4, axis=0))
    outputs[4, 0, 0] = value
    found = compute(outputs)
    assert np.isnan(found[4]).all() and np.isnan(found[:, 4]).all()
    rest = np.delete(np.delete(found, 4, axis=0), 4, axis=1)
    np.testing.assert_allclose(rest, expected, atol=1e-6)


def test_cosines_of_neighbors() -> None:
    outputs = make_outputs()
    cosines = kernels.compute_cosine_gram(outputs)
    n = len(outputs)
    found = kernels.compute_neighbor_cosines(outputs, periodic=True)
    expected = [cosines[i, (i + 1) % n] for i in range(n)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    found = kernels.compute_neighbor_cosines(outputs)
    np.testing.assert_allclose(found, expected[:-1], atol=1e-6)


@pytest.mark.parametrize("sizes", [(5, 4), (3, 4, 2), (6,)])
def test_ideal_kernels_equal_double_loops(sizes: tuple[int, ...]) -> None:
    grid = make_grid(*sizes)
    agrees = np.array([[p == q for q in grid] for p in grid])  # [n, n, F]
    found = kernels.make_factorized_kernel(grid)
    np.testing.assert_allclose(found, agrees.mean(axis=2))
    found = kernels.make_conjunctive_kernel(grid)
    np.testing.assert_allclose(found, agrees.all(axis=2))
    assert (kernels.IDEAL_KERNELS["constant"](grid) == 1).all()


def test_true_bumps_resemble_both_ideal_kernels() -> None:
    """Published settings: cosines, centered, over OOD points only."""
    cosines = compute_cosine_gram(make_bumps(GRID, 28))
    scores = kernels.summarize_alignment(cosines, GRID, IS_OOD)
    assert scores["alignment_factorized"] == pytest.approx(0.41, abs=0.005)
    assert scores["alignment_conjunctive"] == pytest.approx(0.42, abs=0.005)
    assert scores["alignment_constant"] == 0
    scores = kernels.summarize_alignment(cosines, GRID, IS_OOD, width=1.0)
    assert scores["alignment_conjunctive"] > 0.999
    assert scores["alignment_factorized"] < 0.7


def slow_alignment(a: np.ndarray, b: np.ndarray) -> float:
    centering = np.eye(len(a)) - 1 / len(a)
    a, b = centering @ a @ centering, centering @ b @ centering
    product = sum(a[i, j] * b[i, j] for i, j in np.ndindex(a.shape))
    return product / np.sqrt((a**2).sum() * (b**2).sum())


def test_alignment_equals_its_definition(rng: np.random.Generator) -> None:
    first, second = rng.normal(size=(2, 7, 7))
    for scale in (1.0, -1e-9, 1e9):
        found = kernels.compute_alignment(scale * first, second)
        expected = np.sign(scale) * slow_alignment(first, second)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_degenerate_kernels_agree_with_nothing(
    value: float, rng: np.random.Generator
) -> None:
    kernel = kernels.make_factorized_kernel(SOME)
    constant = np.full((len(SOME), len(SOME)), value)
    assert kernels.compute_alignment(constant, kernel) == 0
    noise = 1 + 1e-7 * rng.normal(size=constant.shape)
    assert kernels.compute_alignment(value * noise, kernel) == 0
    by_row = value + np.repeat(rng.normal(size=(len(SOME), 1)), len(SOME), 1)
    assert kernels.compute_alignment(by_row, kernel) == 0


def test_values_that_are_not_finite_and_no_points_give_none() -> None:
    gram = kernels.make_factorized_kernel(GRID)
    nowhere = np.zeros(len(GRID), bool)
    scores = kernels.summarize_alignment(gram, GRID, nowhere)
    assert set(scores.values()) == {None}
    first = np.flatnonzero(IS_OOD)[0]
    gram[first, first] = np.nan
    scores = kernels.summarize_alignment(gram, GRID, IS_OOD)
    assert set(scores.values()) == {None}
    assert math.isnan(kernels.compute_alignment(gram, gram))
    scores = kernels.summarize_alignment(gram, GRID, ~IS_OOD)
    assert scores["alignment_factorized"] == pytest.approx(1)
    # Centered, all kernels of two points are equal up to a factor.
    pair = np.arange(len(GRID)) < 2
    for summarize in (
        kernels.summarize_alignment,
        kernels.summarize_best_alignment,
    ):
        assert set(summarize(gram, GRID, pair).values()) == {None}


# Similarity of representations


def draw(seed: int, units: int, points: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(points, units))


def shape(features: np.ndarray) -> similarity.Shape:
    return similarity.make_shape(features @ features.T)


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
    found = similarity.compare_shapes(shape(x), shape(y))
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
    null = summarize_similarity(shape(x), shape(y))
    assert {null[f"{n}_p"] for n in ("cka", "procrustes", "rsa")} == {0.05}


@pytest.mark.parametrize("units", [5, 500])
def test_random_features_are_not_alike(units: int) -> None:
    found = [
        similarity.compare_shapes(
            shape(draw(2 * i, units)), shape(draw(2 * i + 1, units))
        )
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
    found = summarize_similarity(similarity.make_shape(gram), other)
    assert set(found.values()) == {None}
