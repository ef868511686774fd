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
        factor = Factor(name, size, 0.0, size - 1.0)
        factors.append(factor)
    return FactorSpace(tuple(factors))


def hold_out(grid: np.ndarray, first: int, last: int) -> np.ndarray:
    """Mask of points with all factors from `first` to `last`, [n]."""
    is_inside = (grid >= first) & (grid <= last)
    return is_inside.all(axis=1)


def make_bumps(grid: np.ndarray, size: int, sigma: float = 1.0) -> np.ndarray:
    """Gaussian bumps at the points (x, y), [n, size, size]."""
    distance = (np.arange(size) - grid[..., None]) / sigma
    profiles = np.exp(-0.5 * distance**2)
    of_x, of_y = profiles.swapaxes(0, 1)
    return np.einsum("nj,ni->nij", of_x, of_y)


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
    known = grid[~is_ood]
    memories = outputs[~is_ood]
    for i in np.flatnonzero(is_ood):
        distance = np.linalg.norm(known - grid[i], axis=1)
        is_nearest = distance == distance.min()
        copies[i] = memories[is_nearest].mean(axis=0)
    return copies


def explain(regressors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Predicts a target [P] by least squares on regressors [k, P]."""
    weights, *_ = np.linalg.lstsq(regressors.T, target, rcond=None)
    return weights @ regressors


def compute_r2(prediction: np.ndarray, target: np.ndarray) -> float:
    """R^2 about zero."""
    error = target - prediction
    return 1 - np.sum(error**2) / np.sum(target**2)
