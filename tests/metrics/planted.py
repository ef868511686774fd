"""Grids of factors, and the images of bumps on them."""

import numpy as np

from tfcomp.datasets.factors import Factor, FactorSpace


def make_grid(*sizes: int) -> np.ndarray:
    """Every combination of integers below the sizes, [n, F], last fastest."""
    return np.argwhere(np.ones(sizes)).astype(np.float32)


def make_space(*sizes: int) -> FactorSpace:
    """The space of that grid."""
    factors = []
    for name, size in zip("xyz", sizes, strict=False):
        factors.append(Factor(name, size, 0.0, size - 1.0))
    return FactorSpace(tuple(factors))


def hold_out(grid: np.ndarray, first: int, last: int) -> np.ndarray:
    """Mask of points with all factors from `first` to `last`, [n]."""
    return ((grid >= first) & (grid <= last)).all(axis=1)


def make_bumps(grid: np.ndarray, size: int, sigma: float = 1.0) -> np.ndarray:
    """Gaussian bumps at the points (x, y), [n, size, size]."""
    distance = (np.arange(size) - grid[..., None]) / sigma
    profiles = np.exp(-0.5 * distance**2)
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
        superposed[i] = 0
        for factor, weight in weights.items():
            mean = outputs[shares[:, factor]].mean(axis=0)
            superposed[i] += weight * mean
    return superposed


def copy_nearest(
    outputs: np.ndarray,
    grid: np.ndarray,
    is_ood: np.ndarray,
) -> np.ndarray:
    """At OOD points, the mean output of the nearest ID points, [n, ...]."""
    copies = outputs.copy()
    known = outputs[~is_ood]
    for i in np.flatnonzero(is_ood):
        squares = ((grid[~is_ood] - grid[i]) ** 2).sum(axis=1)
        copies[i] = known[squares == squares.min()].mean(axis=0)
    return copies


def explain(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Predicts a target [P] by least squares on regressors [k, P]."""
    weights = np.linalg.lstsq(regressors.T, target, rcond=None)[0]
    return weights @ regressors


def compute_r2(prediction: np.ndarray, target: np.ndarray) -> float:
    """R^2 about zero."""
    return 1 - np.sum((target - prediction) ** 2) / np.sum(target**2)
