"""Parts of a kernel: Schmidt decomposition, and analysis of variance.

A kernel over two factors is a sum of products (paper eq. 1, 30)

    K[(x, y), (x', y')] = sum_m s_m A_m[x, x'] B_m[y, y'],     s_m >= 0

whose s_m are the singular values of K realigned as a matrix
[(x, x'), (y, y')]. One term (the Schmidt rank, eq. 31, is 1): a product
kernel, as of true bumps. Two terms: an additive kernel, as the binary
factorized one (eq. 3): a(x, x') * 1 + 1 * b(y, y'). Many: factors are mixed.
The first terms are *not* terms of low order, as in `summarize_anova`.

Any activations that are not negative look like one product. So there are
*centered* numbers, of the kernel less its means over either argument, as of
outputs less their mean over the grid.

With p_m = s_m^2 / sum s^2, the effective rank is exp(-sum p log p), and the
explained fraction of the first m terms is p_1 + ... + p_m.

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
o, explain the parts of true images, t, by

    R^2 = 1 - sum |s o - t|^2 / sum |t|^2,     s = sum <o, t> / sum <o, o>

with one scale s for all images. A plus with a bump of .001 on it has 1 as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.metrics import features
from tfcomp.metrics.registry import (
    Scores,
    computes,
    finite_or_none,
    make_scores,
)
from tfcomp.statistics.limits import SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

# Share of a kernel's largest number that centering a constant kernel leaves.
ROUNDING = 1e-12
# Share of variation in a kernel up to which it is the rounding of a constant.
ANOVA_FLOOR = 1e-12
# Share of interaction parts in the energy of outputs that can be rounding.
PART_ROUNDING = 1e-10


@features.single_threaded
def compute_schmidt_values(
    gram: Array,
    shape: Sequence[int],
) -> Array:
    """Computes the singular values of a kernel between two factors (eq. 30).

    Args:
        gram: Similarity of all pairs of points, [n, n].
        shape: Numbers of values of two factors.

    Returns:
        min(Nx^2, Ny^2) values, largest first; NaN if not finite.
    """
    blocks = arrange_grid(gram, shape)  # [x, y, x', y']
    nx, ny = shape
    if not np.isfinite(blocks).all():
        num_values = min(nx**2, ny**2)
        return np.full(num_values, np.nan)

    realigned = blocks.swapaxes(1, 2)  # [x, x', y, y']
    matrix = realigned.reshape(nx**2, ny**2)
    return scipy.linalg.svdvals(matrix, check_finite=False)


def compute_explained_fraction(values: Array) -> Array:
    """Computes shares of the first 1, 2, ... terms (eq. 33).

    Args:
        values: Singular values, largest first.
    """
    squares = _square(values)
    shares = squares / squares.sum()
    return np.cumsum(shares)


def summarize_schmidt(
    gram: Array,
    shape: Sequence[int],
    name: str = "schmidt",
) -> Scores:
    """Summarizes the terms of a kernel (eq. 31).

    Args:
        gram: Similarity of all pairs of points, [n, n].
        shape: Numbers of values of two factors.
        name: The beginning of names.

    Returns:
        The effective rank, as `schmidt_effective_rank`, and as
        `schmidt_explained_1` and `schmidt_explained_2` the shares of the best
        product kernel and of the best two terms. None for a kernel that is zero
        or not finite.
    """
    values = compute_schmidt_values(gram, shape)
    explained = compute_explained_fraction(values)
    rank = features.compute_effective_rank(_square(values))
    return make_scores(
        {
            f"{name}_effective_rank": rank,
            f"{name}_explained_1": explained[0],
            # A factor with one value leaves a single term, which is all.
            f"{name}_explained_2": explained[:2][-1],
        }
    )


def center_kernel(gram: Array) -> Array:
    """Takes the means off a kernel [n, n]; zero if only rounding is left."""
    gram = np.asarray(gram, np.float64)
    sizes = np.abs(gram)
    largest = sizes.max(initial=0.0)
    if not np.isfinite(largest):
        return np.full_like(gram, np.nan)

    if largest == 0:
        return np.zeros_like(gram)

    unit = gram / largest
    rows = unit.mean(axis=1)
    columns = unit.mean(axis=0)
    centered = unit - rows[:, None] - columns
    centered = centered + columns.mean()
    rest = np.abs(centered).max()
    if rest <= ROUNDING:
        return np.zeros_like(centered)
    return centered * largest


def arrange_grid(
    gram: Array,
    shape: Sequence[int],
) -> Array:
    """Reshapes a Gram matrix over a complete grid to [x, y, ..., x', y', ...].

    Args:
        gram: Similarity of all pairs of points, last factor fastest, [n, n].
        shape: Numbers of values of the factors.
    """
    gram = np.asarray(gram, np.float64)
    return gram.reshape(*shape, *shape)


def _square(values: Array) -> Array:
    # Scaled first, or a faint kernel would underflow; NaN of none.
    values = np.asarray(values, np.float64)
    largest = values.max(initial=0.0)
    if not largest > 0:
        return np.full_like(values, np.nan)
    scaled = values / largest
    return scaled**2


def summarize_anova(
    gram: Array,
    shape: Sequence[int],
) -> Scores:
    """Splits the variance of a kernel by the order of its terms (A.5).

    Args:
        gram: Similarity of all pairs of points, [n, n].
        shape: Numbers of values of the factors.

    Returns:
        `factorization_ratio`, and shares: `anova_first`, `anova_second` and
        `anova_pairwise` of two factors, else `anova_single`, `anova_pairwise`
        and `anova_higher`. None for a kernel that does not vary or is not
        finite.
    """
    blocks = arrange_grid(gram, shape)
    count = len(shape)
    mean = blocks.mean()
    deviations = blocks - mean
    total = np.mean(deviations**2)
    if not total > ANOVA_FLOOR * np.mean(blocks**2):
        total = np.nan

    single = []
    squares = []
    for i in range(count):
        term = _keep(blocks, [i]) - mean
        single.append(term)
        squares.append(np.mean(term**2))
    shares = np.array(squares) / total
    ratio = min(shares.sum(), 1.0)  # but for an ulp
    if count == 2:
        numbers = {
            "anova_first": shares[0],
            "anova_second": shares[1],
            "anova_pairwise": 1 - ratio,
        }
    else:
        pairs = 0.0
        for i, j in itertools.combinations(range(count), 2):
            both = _keep(blocks, [i, j]) - mean
            both = both - single[i] - single[j]
            pairs += np.mean(both**2)
        share = pairs / total
        rest = 1 - ratio - share
        numbers = {
            "anova_single": ratio,
            "anova_pairwise": share,
            "anova_higher": max(rest, 0.0),
        }
    numbers["factorization_ratio"] = ratio
    return make_scores(numbers)


def _keep(blocks: Array, factors: list[int]) -> Array:
    """Averages over both arguments of all other factors; keeps the axes."""
    count = blocks.ndim // 2
    first = [i for i in range(count) if i not in factors]
    second = [count + i for i in first]
    axes = (*first, *second)
    return blocks.mean(axis=axes, keepdims=True)


def remove_marginals(images: Array) -> Array:
    """Removes row and column means of images [n, H, W, C]; [n, H, W]."""
    maps = np.asarray(images, np.float64).mean(axis=-1)
    for axes in ((1, 2), (1,), (2,)):
        means = maps.mean(axis=axes, keepdims=True)
        maps = maps - means
    return maps


def compute_interaction_r2(images: Array, truth: Array) -> float | None:
    """Computes R^2 of the interaction part of images on the true part.

    Args:
        images: Outputs of a model, [n, H, W, C].
        truth: True images of the same shape.

    Returns:
        R^2 in [0, 1]; None if the truth has no interaction part.
    """
    output_part = remove_marginals(images)
    true_part = remove_marginals(truth)
    energy = float(np.sum(output_part**2))
    total = float(np.sum(true_part**2))
    if not np.isfinite(energy):
        return None
    least = PART_ROUNDING * np.size(truth)
    if not total > least:
        return None

    outputs = np.asarray(images, np.float64)
    deviations = outputs - outputs.mean()
    variation = np.sum(deviations**2)
    if energy <= PART_ROUNDING * variation:
        return 0.0

    product = float(np.vdot(output_part, true_part))
    product = max(product, 0.0)  # of a negative image
    r2 = product**2 / (energy * total)
    return finite_or_none(min(r2, 1.0))


@computes(
    "run",
    SHARE,
    "interaction_r2_id interaction_r2_ood",
    better="high",
)
def measure_image_interaction(analysis: RunAnalysis) -> Scores:
    """Tests whether images are sums over rows and columns (section 4.2)."""
    if not analysis.dataset.has_position:
        return {}

    evaluation = analysis.evaluation
    numbers: Scores = {}
    for subset, rows in analysis.subsets.items():
        images = evaluation.images[rows]
        truth = evaluation.truth[rows]
        r2 = compute_interaction_r2(images, truth)
        numbers[f"interaction_r2_{subset}"] = r2
    return numbers
