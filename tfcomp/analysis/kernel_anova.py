"""Functional analysis of variance of a kernel: how much is of low order?

The generalized factorization ratio of appendix A.5 (equations 32 to 35) is the
share of a kernel's terms of low order. Over a grid of two factors a kernel
is, in one way only, a sum of terms that are orthogonal to each other,

    K[(x, y), (x', y')] = m + a(x, x') + b(y, y') + c(x, x', y, y')

with the mean m over all pairs, and a, b and c without a mean over either pair
of arguments. a and b are the single-factor terms, c is the pairwise one: with
mean squares as weights (w = |c|^2) the ratio is

    eta = (|a|^2 + |b|^2) / (|a|^2 + |b|^2 + |c|^2)         in [0, 1]

1 for an additive kernel, as the binary factorized one of equations 3 and 4,
and 2 / (N + 1) for one that tells only equal points of an N x N grid, as pure
memorization does. The constant says nothing of x or y, so it is in
neither sum. The first terms of a Schmidt decomposition are *not* those of low
order: a product of functions of x and of y is one Schmidt term, and is of the
highest order.
"""

from __future__ import annotations

import numpy as np

from tfcomp.analysis.finite import finite_or_none
from tfcomp.analysis.schmidt import arrange_grid

# Mean square of all that varies, relative to the kernel's, up to which it is
# the rounding of a constant kernel.
FLOOR = 1e-12


def summarize_anova(
    gram: np.ndarray, factors: np.ndarray
) -> dict[str, float | None]:
    """The shares of a kernel's terms in its variance over pairs of points.

    Args:
        gram: Symmetric matrix [n, n].
        factors: Values of exactly two factors, [n, 2]; every combination of
            the values that occur, once each, in any order.

    Returns:
        `anova_first`, `anova_second` (the terms of one factor each),
        `anova_pairwise` (the rest; the three add up to 1), and
        `factorization_ratio`, the sum of the first two. None for a kernel
        that does not vary or is not finite.

    Raises:
        ValueError: As `compute_schmidt_values`.
    """
    blocks = arrange_grid(gram, factors)  # [x, y, x', y']
    mean = blocks.mean()
    first = blocks.mean(axis=(1, 3)) - mean
    second = blocks.mean(axis=(0, 2)) - mean
    total = np.mean((blocks - mean) ** 2)
    parts = np.array([np.mean(first**2), np.mean(second**2)])
    varies = total > FLOOR * np.mean(blocks**2)
    shares = parts / total if varies else np.full(2, np.nan)
    ratio = min(shares.sum(), 1.0)  # but for an ulp
    names = ("anova_first", "anova_second", "anova_pairwise")
    numbers = dict(zip(names, (*shares, 1 - ratio), strict=True))
    numbers["factorization_ratio"] = ratio
    return {name: finite_or_none(value) for name, value in numbers.items()}
