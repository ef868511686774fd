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

Of more factors there are terms of one factor each, of pairs, and of more; the
ratio is the share of those of one factor.
"""

import itertools

import numpy as np

from tfcomp.analysis.finite import finite_or_none
from tfcomp.analysis.schmidt import arrange_grid

# Mean square of all that varies, relative to the kernel's, up to which it is
# the rounding of a constant kernel.
FLOOR = 1e-12


def summarize_anova(
    gram: np.ndarray, factors: np.ndarray
) -> dict[str, float | None]:
    """The shares of a kernel's terms in its variance, by their order.

    The matrix [n, n] is symmetric; the factors [n, F] have every combination
    of the values that occur, once each, in any order.

    Returns:
        Of two factors `anova_first`, `anova_second` (the terms of one factor
        each) and `anova_pairwise` (the rest; the three add up to 1). Of any
        other number `anova_single`, `anova_pairwise` and `anova_higher`,
        the sums of the terms of one factor, of two and of more. And
        `factorization_ratio`, the share of all terms of one factor. None for
        a kernel that does not vary or is not finite.

    Raises:
        ValueError: If the factors are no full grid.
    """
    blocks = arrange_grid(gram, factors)  # [x, y, ..., x', y', ...]
    mean, count = blocks.mean(), blocks.ndim // 2
    total = np.mean((blocks - mean) ** 2)
    varies = total > FLOOR * np.mean(blocks**2)
    scale = total if varies else np.nan
    single = [_keep(blocks, [i]) - mean for i in range(count)]
    shares = np.array([np.mean(term**2) for term in single]) / scale
    ratio = min(shares.sum(), 1.0)  # but for an ulp
    if count == 2:
        names = ("anova_first", "anova_second", "anova_pairwise")
        numbers = dict(zip(names, (*shares, 1 - ratio), strict=True))
    else:
        pairs = sum(
            np.mean((_keep(blocks, [i, j]) - mean - single[i] - single[j]) ** 2)
            for i, j in itertools.combinations(range(count), 2)
        )
        names = ("anova_single", "anova_pairwise", "anova_higher")
        orders = (ratio, pairs / scale, max(1 - ratio - pairs / scale, 0.0))
        numbers = dict(zip(names, orders, strict=True))
    numbers["factorization_ratio"] = ratio
    return {name: finite_or_none(value) for name, value in numbers.items()}


def _keep(blocks: np.ndarray, factors: list[int]) -> np.ndarray:
    """Mean over both arguments of all factors but some; keeps its axes."""
    count = blocks.ndim // 2
    others = [i for i in range(count) if i not in factors]
    axes = (*others, *(count + i for i in others))
    return blocks.mean(axis=axes, keepdims=True)
