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

with one scale s for all images. A plus with a bump of .001 on it has 1 as well,
so beside it stand the size of the part, |o| / |t|, and its share of the
variance over pixels.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.metrics import features
from tfcomp.metrics.features import Scores, finite_or_none
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import POSITIVE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

# Share of a kernel's largest number that centering a constant kernel leaves.
ROUNDING = 1e-12
# Share of variation in a kernel up to which it is the rounding of a constant.
ANOVA_FLOOR = 1e-12
# Share of interaction parts in the energy of outputs that can be rounding.
PART_ROUNDING = 1e-10


@features.single_threaded
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
    rank = float(features.compute_effective_rank(_square(values)))
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


def summarize_anova(gram: Array, factors: Array) -> Scores:
    """Returns the shares of a kernel's terms [n, n] in its variance, by order.

    `anova_first`, `anova_second` and `anova_pairwise` of two factors, else
    `anova_single`, `anova_pairwise` and `anova_higher`, of factors [n, F]. None
    for a kernel that does not vary or is not finite.
    """
    blocks = arrange_grid(gram, factors)  # [x, y, ..., x', y', ...]
    mean, count = blocks.mean(), blocks.ndim // 2
    total = np.mean((blocks - mean) ** 2)
    scale = total if total > ANOVA_FLOOR * np.mean(blocks**2) else np.nan
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
    if not (np.isfinite(energy) and total > PART_ROUNDING * np.size(truth)):
        return None
    whole = np.asarray(images, np.float64)
    if energy <= PART_ROUNDING * np.sum((whole - whole.mean()) ** 2):
        return 0.0
    product = max(float(np.vdot(drawn, true)), 0.0)  # or a negative image
    return finite_or_none(min(product**2 / (energy * total), 1.0))


def compute_interaction_size(images: Array, truth: Array) -> Scores:
    """Returns norm over true norm, and shares of variance over pixels."""
    drawn, within = _sum_squares(images)
    true, true_within = _sum_squares(truth)
    if not (np.isfinite(drawn) and true > PART_ROUNDING * np.size(truth)):
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
    is_rounding = part <= PART_ROUNDING * np.sum(maps**2)
    return 0.0 if is_rounding else part, float(within)


def _average_channels(images: Array) -> Array:
    maps = np.asarray(images, np.float64)
    return maps.mean(axis=-1) if maps.ndim == 4 else maps


@computes("run", SHARE, "interaction_r2_id interaction_r2_ood", better="high")
@computes("run", POSITIVE, "interaction_amplitude_id interaction_amplitude_ood")
@computes(
    "run",
    SHARE,
    "interaction_variance_id interaction_variance_ood "
    "interaction_truth_variance_id interaction_truth_variance_ood",
)
def measure_image_interaction(analysis: RunAnalysis) -> Scores:
    """Tests whether images are sums over rows and columns (section 4.2)."""
    if not analysis.dataset.has_position:
        return {}
    numbers: Scores = {}
    found = analysis.evaluation
    for name, rows in analysis.subsets.items():
        pair = found.images[rows], found.truth[rows]
        kinds = compute_interaction_size(*pair)
        kinds["r2"] = compute_interaction_r2(*pair)
        numbers |= {f"interaction_{k}_{name}": x for k, x in kinds.items()}
    return numbers
