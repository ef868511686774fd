"""Schmidt decomposition: planted ranks, and the plain definition."""

import math

import numpy as np
import pytest

from tests.analysis.planted import make_bumps, make_grid
from tfcomp.analysis import kernels, schmidt
from tfcomp.analysis.kernels import compute_cosine_gram


def make_gram(n: int) -> np.ndarray:
    rows = np.random.default_rng(5).normal(size=(n, 9))
    return rows @ rows.T


def slow_realign(gram: np.ndarray, nx: int, ny: int) -> np.ndarray:
    realigned = np.empty((nx * nx, ny * ny))
    for x, y, x_other, y_other in np.ndindex(nx, ny, nx, ny):
        row, column = x * nx + x_other, y * ny + y_other
        realigned[row, column] = gram[x * ny + y, x_other * ny + y_other]
    return realigned


@pytest.mark.parametrize("sizes", [(4, 5), (5, 3), (1, 4), (6, 6), (1, 1)])
def test_values_equal_the_definition(sizes: tuple[int, int]) -> None:
    gram, grid = make_gram(math.prod(sizes)), make_grid(*sizes)
    realigned = slow_realign(gram, *sizes)
    expected = np.linalg.svd(realigned, compute_uv=False)
    found = schmidt.compute_schmidt_values(gram, grid)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert np.sum(found**2) == pytest.approx(np.sum(gram**2))


@pytest.mark.parametrize("scale", [1e-200, 1e6])
@pytest.mark.parametrize(
    ("name", "rank"), [("conjunctive", 1), ("constant", 1), ("factorized", 2)]
)
@pytest.mark.parametrize("width", [0.0, 1.5])
def test_planted_ranks(
    name: str, rank: int, width: float, scale: float
) -> None:
    grid = make_grid(7, 6).astype(float)
    gram = scale * kernels.IDEAL_KERNELS[name](grid, width=width)
    values = schmidt.compute_schmidt_values(gram, grid)
    assert (values > 1e-12 * values[0]).sum() == rank
    explained = schmidt.compute_explained_fraction(values)
    assert explained[rank - 1] == pytest.approx(1)
    summary = schmidt.summarize_schmidt(gram, grid)
    effective = summary["schmidt_effective_rank"]
    assert effective == pytest.approx(1) if rank == 1 else 1 < effective < 2


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_blank_and_broken_kernels_give_none(value: float) -> None:
    gram = np.full((20, 20), value)
    scores = schmidt.summarize_schmidt(gram, make_grid(4, 5))
    assert set(scores.values()) == {None}


def test_only_full_grids_of_two_factors() -> None:
    gram, grid = make_gram(20), make_grid(4, 5)
    for bad in (grid[:-1], np.concatenate([grid[:-1], grid[:1]])):
        with pytest.raises(ValueError, match="combinations once"):
            schmidt.compute_schmidt_values(gram, bad)


def test_centering_equals_its_definition() -> None:
    rows = np.random.default_rng(5).normal(2, 1, size=(20, 9))
    found = schmidt.center_kernel(rows @ rows.T)
    centered = rows - rows.mean(axis=0)
    np.testing.assert_allclose(found, centered @ centered.T, atol=1e-10)


def test_random_features_are_no_product_once_centered() -> None:
    """Features that are not negative look like one without it."""
    grid = make_grid(12, 12)
    features = np.random.default_rng(0).normal(1, 1, size=(144, 200))
    gram = compute_cosine_gram(np.maximum(features, 0))
    found = schmidt.summarize_schmidt(gram, grid)
    assert found["schmidt_explained_1"] > 0.98
    assert found["schmidt_effective_rank"] < 1.2
    assert found["schmidt_centered_explained_1"] < 0.6
    assert found["schmidt_centered_effective_rank"] > 10
    bumps = schmidt.summarize_schmidt(
        compute_cosine_gram(make_bumps(grid, 12)), grid
    )
    assert bumps["schmidt_centered_explained_1"] > 0.9  # .98 of 28 x 28
