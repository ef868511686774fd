"""Compares representations of the same points.

Of stages at the same n points, with inner products K and L of their
activations; all three are blind to rotations, shifts and a common scale:

    cka          debiased linear CKA: HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))
                 with the unbiased HSIC of Song et al. (2012): 0 in the mean
                 for random features; at most 1
    procrustes   distance of centered activations X, Y of norm 1 after the best
                 rotation: sqrt(2 - 2 |X^T Y|_*), |.|_* the sum of singular
                 values; 0 for equal shapes, at most sqrt(2)
    rsa          Spearman correlation of the distances between all points

The null is the same number after the points of one side were permuted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics.features import (
    Rows,
    Scores,
    finite_or_none,
    single_threaded,
)
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import AT_MOST_ONE, CORRELATION, Limits

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

# Singular values of every permutation take the third power of this.
MAX_POINTS = 128
# The fewest for which p can be 0.05.
NUM_PERMUTATIONS = 19


class Shape(NamedTuple):
    """The compared parts of a representation, [n, n] each, of norm 1."""

    gram: Array  # U-centered inner products
    roots: Array  # centered activations up to a rotation
    ranks: Array  # centered ranks of distances


@single_threaded
def make_shape(gram: Array) -> Shape:
    """Prepares a representation for comparisons.

    Args:
        gram: Inner products of the activations of n points, [n, n].

    Returns:
        Its parts; NaN for fewer than 4 points, or if no distances differ.
    """
    from scipy.stats import rankdata

    count = len(gram)
    gram = np.asarray(gram, np.float64)
    if count < 4 or not np.isfinite(gram).all():
        nothing = np.full((count, count), np.nan)
        return Shape(nothing, nothing, nothing)

    # Without bias (Szekely and Rizzo 2014).
    is_pair = ~np.eye(count, dtype=bool)
    pairs = gram * is_pair
    sums = pairs.sum(axis=0) / (count - 2)
    total = sums.sum() / (count - 1)
    debiased = pairs - sums - sums[:, None] + total

    # As usual.
    means = gram.mean(axis=0)
    centered = gram - means - means[:, None] + means.mean()
    values, vectors = np.linalg.eigh(centered)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))

    lengths = np.diagonal(centered)
    distances = (lengths[:, None] + lengths - 2 * centered)[is_pair]
    # Rounding must not order equal distances.
    unit = np.round(distances / (distances.max() or 1.0), 9)
    ranks = rankdata(unit)
    table = np.zeros_like(gram)
    table[is_pair] = ranks - ranks.mean()
    return Shape(
        gram=_scale(debiased * is_pair),
        roots=_scale(roots),
        ranks=_scale(table),
    )


def compare_shapes(
    first: Shape,
    second: Shape,
    order: Array | slice = slice(None),
) -> dict[str, float]:
    """Computes the three metrics.

    Args:
        first: One representation of n points.
        second: Another one of the same points.
        order: Reorders the points of the second.
    """
    product = first.roots.T @ second.roots[order]
    nuclear = np.nan  # LAPACK may refuse NaN
    if np.isfinite(product).all():
        nuclear = np.linalg.svd(product, compute_uv=False).sum()
    second_gram = second.gram[order][:, order]
    second_ranks = second.ranks[order][:, order]
    return {
        "cka": np.vdot(first.gram, second_gram),
        "procrustes": np.sqrt(np.maximum(2 - 2 * nuclear, 0.0)),
        "rsa": np.vdot(first.ranks, second_ranks),
    }


@single_threaded
def summarize_similarity(first: Shape, second: Shape) -> Scores:
    """Computes the metrics and their null.

    Args:
        first: One representation of n points.
        second: Another one of the same points.

    Returns:
        By metric its value; `<name>_null`, the mean over permutations; and
        `<name>_p`, the share of permutations, with the identity, that are as
        similar.
    """
    rng = np.random.default_rng(0)
    count = len(first.gram)
    orders = [rng.permutation(count) for _ in range(NUM_PERMUTATIONS)]
    nulls = [compare_shapes(first, second, order) for order in orders]
    numbers: Scores = {}
    for name, value in compare_shapes(first, second).items():
        null = np.array([values[name] for values in nulls])
        if name == "procrustes":
            is_worse = null > value
        else:
            is_worse = null < value

        share = None
        if not np.isnan(value):
            share = float((1 + np.sum(~is_worse)) / (1 + len(null)))
        numbers[name] = value
        numbers[f"{name}_null"] = float(null.mean())
        numbers[f"{name}_p"] = share
    return {name: finite_or_none(value) for name, value in numbers.items()}


def _scale(values: Array) -> Array:
    """Scales to norm one; NaN for zeros."""
    norm = np.linalg.norm(values)
    if norm > 0:
        return values / norm
    return np.full_like(values, np.nan)


@computes("stages", AT_MOST_ONE, "image_cka image_cka_null")
@computes(
    "stages", Limits(0.0, 2**0.5), "image_procrustes image_procrustes_null"
)
@computes("stages", CORRELATION, "image_rsa image_rsa_null")
def measure_similarity(analysis: RunAnalysis) -> Rows:
    """Compares stages with the image, by `tfcomp.metrics.similarity`."""
    image = analysis.shapes.get("image")
    if image is None:
        return {}

    rows: Rows = {}
    for stage, shape in analysis.shapes.items():
        numbers = summarize_similarity(shape, image)
        rows[stage] = {
            f"image_{name}": value
            for name, value in numbers.items()
            if not name.endswith("_p")
        }
    return rows
