"""Terms of one factor and of both: planted kernels and the definition."""

import itertools

import numpy as np
import pytest

from tests.analysis.planted import make_bumps, make_grid
from tfcomp.analysis import kernels
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.kernel_anova import summarize_anova
from tfcomp.analysis.schmidt import summarize_schmidt

NX, NY = 5, 6
GRID = make_grid(NX, NY)


def test_shares_equal_the_definition(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(NX * NY, 7))
    gram = rows @ rows.T
    first, second = np.zeros((2, *gram.shape))
    for i, j in itertools.product(range(len(GRID)), repeat=2):
        same = [
            (GRID[:, None, f] == GRID[i, f]) & (GRID[None, :, f] == GRID[j, f])
            for f in (0, 1)
        ]
        first[i, j], second[i, j] = (gram[rows].mean() for rows in same)
    found = summarize_anova(3 * gram, GRID)
    assert found["anova_first"] == pytest.approx(first.var() / gram.var())
    assert found["anova_second"] == pytest.approx(second.var() / gram.var())
    rest = gram - first - second
    assert found["anova_pairwise"] == pytest.approx(rest.var() / gram.var())
    order = rng.permutation(len(GRID))
    shuffled = summarize_anova(gram[np.ix_(order, order)], GRID[order])
    assert shuffled == pytest.approx(found)


def test_orders_of_three_factors(rng: np.random.Generator) -> None:
    grid = make_grid(2, 3, 2)
    gram = np.cov(rng.normal(size=(len(grid), 5)))
    count = len(grid)
    first, second = np.divmod(np.arange(count**2), count)
    pairs = np.hstack([grid[first], grid[second]])  # both arguments

    def explain(*factors: int) -> float:
        """Variance of the means over what other factors do."""
        columns = [c for f in factors for c in (f, f + 3)]
        _, cell = np.unique(pairs[:, columns], axis=0, return_inverse=True)
        flat, cell = gram.ravel(), cell.ravel()
        means = np.bincount(cell, flat) / np.bincount(cell)
        return means[cell].var() / gram.var()

    single = sum(map(explain, range(3)))
    found = summarize_anova(gram, grid)
    assert found["anova_single"] == found["factorization_ratio"]
    assert found["anova_single"] == pytest.approx(single)
    both = sum(explain(*f) for f in itertools.combinations(range(3), 2))
    assert found["anova_pairwise"] == pytest.approx(both - 2 * single)
    assert found["anova_higher"] == pytest.approx(1 - both + single)
    additive = summarize_anova(kernels.make_factorized_kernel(grid), grid)
    assert additive["anova_single"] == pytest.approx(1)


@pytest.mark.parametrize("width", [0.0, 1.5])
def test_additive_kernels_have_a_ratio_of_one(width: float) -> None:
    found = summarize_anova(kernels.make_factorized_kernel(GRID, width), GRID)
    assert found["factorization_ratio"] == pytest.approx(1)
    assert found["anova_first"] > 0.3 < found["anova_second"]
    alone = (GRID[:, 0] == GRID[:, :1]).astype(float)
    assert summarize_anova(alone, GRID)["anova_first"] == pytest.approx(1)


def test_one_schmidt_term_is_not_of_low_order() -> None:
    grid = make_grid(16, 16)
    cosines = compute_cosine_gram(make_bumps(grid, 16))
    assert summarize_schmidt(cosines, grid)["schmidt_explained_1"] > 0.99
    assert summarize_anova(cosines, grid)["factorization_ratio"] < 0.5
    equal = summarize_anova(np.eye(256), grid)
    assert equal["factorization_ratio"] == pytest.approx(2 / 17)


@pytest.mark.parametrize("value", [0.0, 0.3, np.nan])
def test_constant_and_broken_kernels_have_none(value: float) -> None:
    found = summarize_anova(np.full((30, 30), value), GRID)
    assert set(found.values()) == {None}
