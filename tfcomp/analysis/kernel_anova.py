"""Functional analysis of variance of a kernel: shares of low orders.

The generalized factorization ratio of appendix A.5 (equations 32 to 35) is the
share of a kernel's terms of low order. Over a grid of two factors a kernel
is, in one way only, a sum of terms that are orthogonal to each other,

    K[(x, y), (x', y')] = m + a(x, x') + b(y, y') + c(x, x', y, y')

with the mean m over all pairs, and a, b and c without a mean over either pair
of arguments. With mean squares as weights (w = |c|^2) the ratio is

    eta = (|a|^2 + |b|^2) / (|a|^2 + |b|^2 + |c|^2)         in [0, 1]

1 for an additive kernel (equations 3 and 4), and 2 / (N + 1) for one that tells
only equal points of an N x N grid, as pure memorization does. Of more factors
it is the share of the terms of one factor.

The interaction part of an image is the image less its row and column means,
zero for every sum f(x) + g(y), as a plus of two stripes. The parts of outputs,
o, explain those of true images, t, by

    R^2 = 1 - sum |s o - t|^2 / sum |t|^2,     s = sum <o, t> / sum <o, o>

with one scale s for all images. A plus with a bump of .001 on it has 1 as well,
so beside it stand the size of the part, |o| / |t|, and its share of the
variance over pixels.
"""

import itertools

import numpy as np
from numpy import ndarray as Array

from tfcomp.analysis.features import Scores, finite_or_none
from tfcomp.analysis.schmidt import arrange_grid

# Share of what varies in a kernel up to which it is the rounding of a constant.
FLOOR = 1e-12
# Share of interaction parts in the energy of outputs that can be rounding.
ROUNDING = 1e-10


def summarize_anova(gram: Array, factors: Array) -> Scores:
    """Returns the shares of a kernel's terms [n, n] in its variance, by order.

    `anova_first`, `anova_second` and `anova_pairwise` of two factors, else
    `anova_single`, `anova_pairwise` and `anova_higher`, of factors [n, F]. None
    for a kernel that does not vary or is not finite.
    """
    blocks = arrange_grid(gram, factors)  # [x, y, ..., x', y', ...]
    mean, count = blocks.mean(), blocks.ndim // 2
    total = np.mean((blocks - mean) ** 2)
    scale = total if total > FLOOR * np.mean(blocks**2) else np.nan
    single = [_keep(blocks, [i]) - mean for i in range(count)]
    shares = np.array([np.mean(term**2) for term in single]) / scale
    ratio = min(shares.sum(), 1.0)  # but for an ulp
    if count == 2:
        names = ("anova_first", "anova_second", "anova_pairwise")
        orders = (*shares, 1 - ratio)
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


def _keep(blocks: Array, factors: list[int]) -> Array:
    """Averages over both arguments of all other factors; keeps the axes."""
    count = blocks.ndim // 2
    others = [i for i in range(count) if i not in factors]
    axes = (*others, *(count + i for i in others))
    return blocks.mean(axis=axes, keepdims=True)


def remove_marginals(images: Array) -> Array:
    """Removes row and column means of images [n, H, W(, C)]; [n, H, W]."""
    maps = _average_channels(images)
    maps = maps - maps.mean(axis=(1, 2), keepdims=True)
    maps = maps - maps.mean(axis=1, keepdims=True)
    return maps - maps.mean(axis=2, keepdims=True)


def compute_interaction_r2(images: Array, truth: Array) -> float | None:
    """Returns R^2 of the interaction part of images on the true part."""
    drawn, true = remove_marginals(images), remove_marginals(truth)
    energy, total = float(np.sum(drawn**2)), float(np.sum(true**2))
    if not (np.isfinite(energy) and total > ROUNDING * np.size(truth)):
        return None
    whole = np.asarray(images, np.float64)
    if energy <= ROUNDING * np.sum((whole - whole.mean()) ** 2):
        return 0.0
    product = max(float(np.vdot(drawn, true)), 0.0)  # or a negative image
    return finite_or_none(min(product**2 / (energy * total), 1.0))


def compute_interaction_size(images: Array, truth: Array) -> Scores:
    """Returns norm over true norm, and shares of variance over pixels."""
    drawn, within = _sum_squares(images)
    true, true_within = _sum_squares(truth)
    if not (np.isfinite(drawn) and true > ROUNDING * np.size(truth)):
        return dict.fromkeys(("amplitude", "variance", "truth_variance"))
    return {
        "amplitude": float(np.sqrt(drawn / true)),
        "variance": drawn / within if drawn else 0.0,
        "truth_variance": true / true_within,
    }


def _sum_squares(images: Array) -> tuple[float, float]:
    maps = _average_channels(images)
    part = float(np.sum(remove_marginals(maps) ** 2))
    within = np.sum((maps - maps.mean((1, 2), keepdims=True)) ** 2)
    is_rounding = part <= ROUNDING * np.sum(maps**2)
    return 0.0 if is_rounding else part, float(within)


def _average_channels(images: Array) -> Array:
    maps = np.asarray(images, np.float64)
    return maps.mean(axis=-1) if maps.ndim == 4 else maps
