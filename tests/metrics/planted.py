"""Grids of factors and the images of bumps on them."""

import itertools

import numpy as np

from tfcomp.datasets.factors import Factor, FactorSpace


def make_grid(*sizes: int) -> np.ndarray:
    """Every combination of integers below the sizes, [n, F], last fastest."""
    return np.array(list(itertools.product(*map(range, sizes))), np.float32)


def make_space(*sizes: int) -> FactorSpace:
    """The space of that grid."""
    pairs = zip("xyz", sizes, strict=False)
    return FactorSpace(tuple(Factor(n, s, 0.0, s - 1.0) for n, s in pairs))


def hold_out(grid: np.ndarray, first: int, last: int) -> np.ndarray:
    """Mask of points with all factors from `first` to `last`, [n]."""
    return ((grid >= first) & (grid <= last)).all(axis=1)


def make_bumps(grid: np.ndarray, size: int) -> np.ndarray:
    """Gaussian bumps of sigma 1 at the points (x, y), [n, size, size]."""
    profiles = np.exp(-0.5 * (np.arange(size) - grid[..., None]) ** 2)
    return np.einsum("nj,ni->nij", profiles[:, 0], profiles[:, 1])


def superpose(
    outputs: np.ndarray,
    grid: np.ndarray,
    is_ood: np.ndarray,
    weights: dict[int, float],
) -> np.ndarray:
    """At OOD points, means of the ID outputs sharing a factor, by weight."""
    superposed = outputs.copy()
    for i in np.flatnonzero(is_ood):
        shares = (grid == grid[i]) & ~is_ood[:, None]
        superposed[i] = sum(
            weight * outputs[shares[:, factor]].mean(axis=0)
            for factor, weight in weights.items()
        )
    return superposed


def copy_nearest(
    outputs: np.ndarray, grid: np.ndarray, is_ood: np.ndarray
) -> np.ndarray:
    """At OOD points, the mean output of the nearest ID points, [n, ...]."""
    copies, known = outputs.copy(), outputs[~is_ood]
    for i in np.flatnonzero(is_ood):
        squares = ((grid[~is_ood] - grid[i]) ** 2).sum(axis=1)
        copies[i] = known[squares == squares.min()].mean(axis=0)
    return copies
