"""Schmidt decomposition of a Gram matrix between its x and its y side.

A kernel over two factors is a sum of products (paper eq. 1, 30)

    K[(x, y), (x', y')] = sum_m s_m A_m[x, x'] B_m[y, y'],     s_m >= 0

whose s_m are the singular values of K realigned as a matrix
[(x, x'), (y, y')]. One term (the Schmidt rank, eq. 31, is 1): a product
kernel, as of true bumps. Two terms: an additive kernel, as the binary
factorized one (eq. 3): a(x, x') * 1 + 1 * b(y, y'). Many: factors are mixed.
The first terms are *not* those of low order, which `kernel_anova` counts.

Any activations that are not negative look like one product. So there are
*centered* numbers, of the kernel less its means over either argument, as of
outputs less their mean over the grid.

With p_m = s_m^2 / sum s^2, the effective rank is exp(-sum p log p), and the
explained fraction of the first m terms is p_1 + ... + p_m.
"""

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.analysis.features import (
    Scores,
    compute_effective_rank,
    finite_or_none,
    single_threaded,
)

# Of the largest number of a kernel: what centering a constant one leaves.
ROUNDING = 1e-12


@single_threaded
def compute_schmidt_values(gram: Array, factors: Array) -> Array:
    """Returns singular values of a Gram matrix [n, n] between two factors.

    Over a full grid of factors [n, 2]: [min(Nx^2, Ny^2)], largest first.
    """
    blocks = arrange_grid(gram, factors)
    nx, ny = blocks.shape[:2]
    if not np.isfinite(blocks).all():
        return np.full(min(nx**2, ny**2), np.nan)
    realigned = blocks.transpose(0, 2, 1, 3).reshape(nx**2, ny**2)
    return scipy.linalg.svdvals(realigned, check_finite=False)


def compute_explained_fraction(values: Array) -> Array:
    """Returns shares of the first 1, 2, ... terms; NaN without any."""
    squares = _square(values)
    return np.cumsum(squares / squares.sum())


def summarize_schmidt(gram: Array, factors: Array) -> Scores:
    """Returns `schmidt_effective_rank`, and shares of the first terms.

    `schmidt_explained_1` is the share of the best product kernel,
    `schmidt_explained_2` of the best two terms, `schmidt_centered_...` the same
    of the centered kernel. None for a kernel that is zero or not finite.
    """
    centered = summarize_centered_schmidt(gram, factors)
    return _summarize(gram, factors, "schmidt") | centered


def summarize_centered_schmidt(gram: Array, factors: Array) -> Scores:
    """Returns the numbers of the centered kernel alone."""
    return _summarize(center_kernel(gram), factors, "schmidt_centered")


def center_kernel(gram: Array) -> Array:
    """Returns a kernel [n, n] less its means; zero if only rounding is left."""
    gram = np.asarray(gram, np.float64)
    largest = np.abs(gram).max(initial=0.0)
    if not np.isfinite(largest):
        return np.full_like(gram, np.nan)
    unit = gram / (largest if largest > 0 else 1.0)
    rows, columns = unit.mean(axis=1)[:, None], unit.mean(axis=0)
    centered = unit - rows - columns + columns.mean()
    return centered * largest * (np.abs(centered).max(initial=0.0) > ROUNDING)


def _summarize(gram: Array, factors: Array, name: str) -> Scores:
    values = compute_schmidt_values(gram, factors)
    explained = compute_explained_fraction(values)
    rank = float(compute_effective_rank(_square(values)))
    return {
        f"{name}_effective_rank": finite_or_none(rank),
        f"{name}_explained_1": finite_or_none(explained[0]),
        # A factor with one value leaves a single term, which is all.
        f"{name}_explained_2": finite_or_none(explained[:2][-1]),
    }


def arrange_grid(gram: Array, factors: Array) -> Array:
    """Reshapes a Gram matrix [n, n] over a grid to [x, y, ..., x', y', ...].

    Raises:
        ValueError: Unless the factors [n, F] have every combination of the
            values that occur, once each, in any order.
    """
    columns = np.transpose(factors)
    places = [np.unique(f, return_inverse=True)[1] for f in columns]
    shape = tuple(int(place.max()) + 1 for place in places)
    cells = np.ravel_multi_index(places, shape)
    if not np.array_equal(np.sort(cells), np.arange(np.prod(shape))):
        raise ValueError(
            f"factors must hold each of {' x '.join(map(str, shape))} "
            f"combinations once; received {len(factors)} points"
        )
    order = np.argsort(cells)  # the last factor runs fastest
    return np.asarray(gram, np.float64)[np.ix_(order, order)].reshape(shape * 2)


def _square(values: Array) -> Array:
    # Scaled first, or a faint kernel would underflow; NaN of none.
    values = np.asarray(values, np.float64)
    largest = values.max(initial=0.0)
    return (values / (largest if largest > 0 else np.nan)) ** 2
