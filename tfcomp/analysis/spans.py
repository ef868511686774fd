"""Explains images by known outputs, combined by least squares.

R^2 about zero and without an intercept, in [0, 1], whatever the scale of the
image: with weights of either sign (`project`), or nonnegative ones (`Spans`).
"""

import contextlib
from collections.abc import Callable

import numpy as np
import scipy

# Relative to the largest eigenvalue of inner products: below is rounding.
_RANK = 1e-13
# Squares of pivots above which a factorization without eigenvalues will do.
_FULL_RANK = 1e-10


class Spans:
    """Sums of ID outputs with nonnegative weights, by inner products."""

    def __init__(self, known: np.ndarray) -> None:
        self.known = known
        self._unit = normalize_outputs(known)
        self._products = self._unit @ self._unit.T
        self._means: dict[tuple[int, float], np.ndarray] = {}

    def span(self, rows: np.ndarray) -> Callable[[np.ndarray], float]:
        """Returns a function from a target [pixels] to R^2 on some rows."""
        regressors = self._unit[rows]
        if not np.isfinite(regressors).all():
            return lambda target: float("nan")
        root, solve = _find_root(self._products[np.ix_(rows, rows)])

        def explain(target: np.ndarray) -> float:
            if not np.isfinite(target).all():
                return float("nan")
            inside = solve(regressors @ normalize_outputs(target[None])[0])
            error = scipy.optimize.nnls(root, inside)[1] ** 2
            # What is outside of their span is not explained.
            return float(np.clip(inside @ inside - error, 0, 1))

        return explain

    def average(
        self, column: int, level: float, shares: np.ndarray
    ) -> np.ndarray:
        """Returns the mean of the known outputs with a level of a factor."""
        key = column, level
        if key not in self._means:
            self._means[key] = self.known[shares].mean(axis=0)
        return self._means[key]


def _find_root(
    products: np.ndarray,
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Returns R [r, k] with R^T R = products, and a solver of R^T z = b."""
    with contextlib.suppress(np.linalg.LinAlgError):
        root = scipy.linalg.cholesky(products)
        if np.diagonal(root).min() ** 2 > _FULL_RANK:
            return root, lambda b: scipy.linalg.solve_triangular(
                root, b, trans="T"
            )
    values, vectors = np.linalg.eigh(products)
    kept = values > _RANK * values[-1]  # none of blank ones
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return (vectors * roots).T, lambda b: b @ vectors / roots


def project(target: np.ndarray, regressors: np.ndarray) -> float:
    """Returns R^2 of a target [pixels] on regressors; NaN if not finite."""
    if not (np.isfinite(target).all() and np.isfinite(regressors).all()):
        return float("nan")
    unit = normalize_outputs(target[None])[0]
    regressors = normalize_outputs(regressors)
    weights = np.linalg.lstsq(regressors.T, unit, rcond=1e-9)[0]
    error = np.sum((unit - weights @ regressors) ** 2)
    return float(np.clip(1 - error, 0, 1))


def normalize_outputs(rows: np.ndarray) -> np.ndarray:
    """Scales outputs [n, pixels] to length one; blank ones stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)
