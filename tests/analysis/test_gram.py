"""Gram matrices against double loops, on good, blank and broken outputs."""

from collections.abc import Callable

import numpy as np
import pytest

from tfcomp.analysis import gram


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
    gram.compute_cosine_gram: (cosine, 1e-6),
    gram.compute_distance_gram: (distance, 1e-7),
    gram.compute_overlap_gram: (overlap, 0),
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
    distances = gram.compute_distance_gram(1000 - bright)
    assert distances[0, 1] == pytest.approx(1e-5, rel=1e-4)
    assert (np.diagonal(distances) == 0).all()


def test_blank_outputs_resemble_nothing() -> None:
    outputs = make_outputs()
    outputs[2] = 0
    for compute in (gram.compute_cosine_gram, gram.compute_overlap_gram):
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
    cosines = gram.compute_cosine_gram(outputs)
    n = len(outputs)
    found = gram.compute_neighbor_cosines(outputs, periodic=True)
    expected = [cosines[i, (i + 1) % n] for i in range(n)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    found = gram.compute_neighbor_cosines(outputs)
    np.testing.assert_allclose(found, expected[:-1], atol=1e-6)
