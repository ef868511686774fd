"""Grids of factors, images of bumps on them, and random numbers."""

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import Factor, FactorSpace


def make_grid(*sizes: int) -> Array:
    """Every combination of integers below the sizes, [n, F], last fastest."""
    index = np.argwhere(np.ones(sizes))
    return index.astype(np.float32)


def make_noise(*shape: int, seed: int = 0) -> Array:
    """Standard normal numbers, the same for a seed."""
    return np.random.default_rng(seed).normal(size=shape)


def make_space(*sizes: int) -> FactorSpace:
    """The space of that grid."""
    factors = []
    for name, size in zip("xyz", sizes, strict=False):
        factor = Factor(name, size, 0.0, size - 1.0)
        factors.append(factor)
    return FactorSpace(tuple(factors))


def hold_out(grid: Array, first: int, last: int) -> Array:
    """Mask of points with all factors from `first` to `last`, [n]."""
    is_inside = (grid >= first) & (grid <= last)
    return is_inside.all(axis=1)


def make_bumps(grid: Array, size: int, sigma: float = 1.0) -> Array:
    """Gaussian bumps at the points (x, y), [n, size, size]."""
    offsets = np.arange(size) - grid[..., None]
    profiles = np.exp(-0.5 * (offsets / sigma) ** 2)
    of_x, of_y = profiles.swapaxes(0, 1)
    return np.einsum("nj,ni->nij", of_x, of_y)


def superpose(
    outputs: Array,
    grid: Array,
    is_ood: Array,
    weights: dict[int, float],
) -> Array:
    """At OOD points, means of the ID outputs sharing a factor, by weight."""
    superposed = outputs.copy()
    known = grid[~is_ood]
    memories = outputs[~is_ood]
    for i in np.flatnonzero(is_ood):
        superposed[i] = 0
        for factor, weight in weights.items():
            shares = known[:, factor] == grid[i, factor]
            mean = memories[shares].mean(axis=0)
            superposed[i] += weight * mean
    return superposed


def copy_nearest(
    outputs: Array,
    grid: Array,
    is_ood: Array,
) -> Array:
    """At OOD points, the mean output of the nearest ID points, [n, ...]."""
    copies = outputs.copy()
    known = grid[~is_ood]
    memories = outputs[~is_ood]
    for i in np.flatnonzero(is_ood):
        offsets = known - grid[i]
        distance = np.linalg.norm(offsets, axis=1)
        is_nearest = distance == distance.min()
        copies[i] = memories[is_nearest].mean(axis=0)
    return copies


def add_nearest(outputs: Array, grid: Array, is_ood: Array) -> Array:
    """At OOD points, the nearest ID output of each factor's value, summed."""
    sums = outputs.copy()
    known = grid[~is_ood]
    memories = outputs[~is_ood]
    for i in np.flatnonzero(is_ood):
        offsets = np.abs(known - grid[i])
        distance = offsets.sum(axis=1, keepdims=True)
        distance = np.where(offsets == 0, distance, np.inf)
        nearest = distance.argmin(axis=0)
        sums[i] = memories[nearest].sum(axis=0)
    return sums


def explain(regressors: Array, target: Array) -> Array:
    """Predicts a target [P] by least squares on regressors [k, P]."""
    weights = np.linalg.pinv(regressors.T) @ target
    return weights @ regressors


def compute_r2(prediction: Array, target: Array) -> float:
    """R^2 about zero."""
    error = target - prediction
    return 1 - (error @ error) / (target @ target)
