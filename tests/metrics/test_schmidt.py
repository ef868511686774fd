"""Parts of kernels and of images: planted ones and the definitions."""

import itertools
import math

import numpy as np
import pytest

from tests.metrics.planted import make_bumps, make_grid
from tfcomp.metrics import kernels, schmidt
from tfcomp.metrics.schmidt import compute_interaction_r2, summarize_anova

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


# Images

BUMPS = make_bumps(make_grid(8, 8) + 2, 12)
PLUSES = np.stack(
    [np.add.outer(b.sum(axis=1), b.sum(axis=0)) for b in BUMPS]
).astype(np.float32)


def test_marginals_against_loops(rng: np.random.Generator) -> None:
    images, truth = rng.normal(size=(2, 3, 4, 5))
    found = schmidt.remove_marginals(images)
    for image, part in zip(images, found, strict=True):
        for i in range(4):
            for j in range(5):
                rest = image[i].mean() + image[:, j].mean() - image.mean()
                assert part[i, j] == pytest.approx(image[i, j] - rest)
    true = schmidt.remove_marginals(truth)
    images[np.vdot(found, true) < 0] *= -1
    found = schmidt.remove_marginals(images)
    (scale,) = np.linalg.lstsq(found.reshape(-1, 1), true.ravel(), rcond=None)[
        0
    ]
    expected = 1 - np.sum((scale * found - true) ** 2) / np.sum(true**2)
    expected = expected if scale > 0 else 0.0
    assert compute_interaction_r2(images, truth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (0.2 * BUMPS + 0.5, 1.0),
        (PLUSES, 0.0),
        (0 * BUMPS + 0.3, 0.0),
        (-BUMPS, 0.0),
        (PLUSES + 0.5 * BUMPS, 1.0),
        (BUMPS * np.nan, None),
        (BUMPS[:0], None),
    ],
    ids=str,
)
def test_planted_images(images: np.ndarray, expected: float | None) -> None:
    """Every plus has its peak where the bump has it."""
    found = compute_interaction_r2(images, BUMPS[: len(images)])
    assert found == pytest.approx(expected, abs=1e-6)


def test_sums_and_broken_images_have_no_interaction() -> None:
    assert compute_interaction_r2(BUMPS, PLUSES) is None
    assert schmidt.compute_interaction_size(BUMPS, PLUSES)["amplitude"] is None
    found = schmidt.compute_interaction_size(BUMPS * np.nan, BUMPS)
    assert set(found.values()) == {None}


@pytest.mark.parametrize(
    ("images", "amplitude", "variance"),
    [
        (0.2 * BUMPS + 0.5, 0.2, None),
        (PLUSES, 0, 0),
        (PLUSES + 0.001 * BUMPS, 0.001, 1e-8),
    ],
    ids=["faint", "plus", "plus and faint bump"],
)
def test_size_of_the_interaction(
    images: np.ndarray, amplitude: float, variance: float | None
) -> None:
    """R^2 of the last one is 1, though nothing can be seen of its bump."""
    found = schmidt.compute_interaction_size(images, BUMPS)
    assert found["amplitude"] == pytest.approx(amplitude, abs=1e-6)
    # By loops over pixels, of one image, as all are alike inside.
    image = BUMPS[27]
    rest = np.add.outer(image.mean(axis=1), image.mean(axis=0)) - image.mean()
    share = np.sum((image - rest) ** 2) / np.sum((image - image.mean()) ** 2)
    assert found["truth_variance"] == pytest.approx(share, abs=0.03)
    expected = found["truth_variance"] if variance is None else variance
    assert found["variance"] == pytest.approx(expected, abs=1e-7)


# Schmidt decomposition


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
    gram = np.full((30, 30), value)
    assert {*schmidt.summarize_schmidt(gram, GRID).values()} == {None}
    for kernel in (gram, gram + 0.3) if value != np.inf else ():
        assert {*summarize_anova(kernel, GRID).values()} == {None}


def test_only_full_grids_of_two_factors() -> None:
    gram, grid = make_gram(20), make_grid(4, 5)
    for bad in (grid[:-1], np.concatenate([grid[:-1], grid[:1]])):
        with pytest.raises(ValueError, match="combinations once"):
            schmidt.compute_schmidt_values(gram, bad)


def test_centering_equals_its_definition() -> None:
    rows = np.random.default_rng(5).normal(2, 1, size=(30, 9))
    found = schmidt.center_kernel(rows @ rows.T)
    centered = (rows - rows.mean(axis=0)) @ (rows - rows.mean(axis=0)).T
    np.testing.assert_allclose(found, centered, atol=1e-10)
    numbers = schmidt.summarize_schmidt(rows @ rows.T, GRID)
    for name in ("effective_rank", "explained_1", "explained_2"):
        expected = schmidt.summarize_schmidt(centered, GRID)[f"schmidt_{name}"]
        assert numbers[f"schmidt_centered_{name}"] == pytest.approx(expected)
        assert numbers[f"schmidt_{name}"] != pytest.approx(expected, rel=0.1)
