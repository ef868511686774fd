"""Tuning of single units: maps, and their additive shares.

Figures 4e, 4f and 15, section 4.2 and appendix F.4 of the paper, where units
go from stripes (a function of one factor) to bumps (a conjunction of all).
Per unit, over the full grid of factors f = (f_1 ... f_F):

    h(f) = m + sum_i a_i(f_i) + interactions
    share of factor i = Var a_i / Var h
    additive share    = sum_i Var a_i / Var h          in [0, 1]

where m is the mean and a_i the mean over all other factors, less m. A sum of
stripes has an additive share of 1, a centered product of factors 0. The pair
share is the share of interactions of two factors.

The additive share also depends on the width of a unit: products of two
Gaussians have .11 to .93. The type of a unit of two factors does not: which
explains more of its variance, the best sum a(x) + b(y) or the best product
c + a(x) b(y) on its level of rest c (its mean, or the end of its range that is
nearer to its mean)? A unit is of a type if that explains at least half of its
variance and by more than `TYPE_MARGIN` of it more than the other does.

A product need not be a bump: a checkerboard is one, and half of an oblique
wave. So every live unit also has one of four shapes (figure 4e):

    stripe in x   a function of x alone explains `SHAPE_FLOOR` of its variance
    stripe in y   likewise, of y alone
    bump          a product explains as much, and the places that are farther
                  from rest than half of the farthest one span at most half of
                  the values of each factor
    other         all else: a plus, a wave, an oblique ridge, several bumps
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics import features
from tfcomp.metrics.features import iterate_units
from tfcomp.metrics.registry import (
    Chart,
    Rows,
    Scores,
    computes,
    make_scores,
)
from tfcomp.statistics.limits import CORRELATION, POSITIVE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

INTERACTIONS = Chart(
    "interactions",
    "Interactions of factors",
    "interaction (0: none)",
    "A one-hot code has no derivatives; the others are by factors in units of "
    "their ranges.",
    "interactions",
)

CURVATURE = Chart(
    "curvature",
    "Gaussian curvature",
    "total curvature",
    "Of two factors.",
    "interactions",
)

# Smallest variance of a unit that counts, relative to the largest of its
# stage: well above the rounding of float32 activations.
DEAD_VARIANCE = 1e-8
# Of the variance of a unit: the lead of its type, and the least that counts.
TYPE_MARGIN = 0.05
TYPE_FLOOR = 0.5
SHAPE_FLOOR = 0.8
_ITERATIONS = 8
# Their maps, float64, stay in the cache of a processor.
_BLOCK_UNITS = 512
NO_TYPES: Scores = dict.fromkeys(
    ("product_share", "sum_share", "product_less_sum")
)
SHAPES = ("stripe_x", "stripe_y", "bump", "other")


@dataclass(frozen=True)
class Tuning:
    """Tuning of the units of one stage over a grid, [units] and [units, F].

    Shares in the variance are NaN for dead units (`DEAD_VARIANCE`), for units
    that are not finite, and of products unless there are two factors. Only
    then a unit can be local (spans at most half of each factor).
    """

    variance: Array
    factor_shares: Array
    pair_share: Array
    product_share: Array
    is_local: Array
    is_dead: Array

    @property
    def additive_share(self) -> Array:
        """Sum of the shares of all factors, [units] in [0, 1] or NaN."""
        total = self.factor_shares.sum(axis=1)
        return np.minimum(total, 1.0)  # but for an ulp


def compute_tuning(activations: Array, shape: Sequence[int]) -> Tuning:
    """Decomposes the variance of every unit over a grid (section 4.2).

    Args:
        activations: One stage over the grid, last factor fastest,
            [prod(shape), ...].
        shape: Numbers of values of the factors.
    """
    flat = np.reshape(activations, (len(activations), -1))
    variances = []
    effects_by_block = []
    local_by_block = []
    for block in iterate_units(flat, _BLOCK_UNITS):
        block_variance, block_effects = _decompose(block, tuple(shape))
        variances.append(block_variance)
        effects_by_block.append(block_effects)
        local_by_block.append(_find_local(block, tuple(shape)))
    variance = np.concatenate(variances)
    effects = np.concatenate(effects_by_block)

    is_finite = np.isfinite(variance)
    largest = variance[is_finite].max(initial=0.0)
    is_dead = is_finite & (variance <= DEAD_VARIANCE * largest)
    is_alive = is_finite & ~is_dead
    shares = np.full_like(effects, np.nan)
    shares[is_alive] = effects[is_alive] / variance[is_alive, None]
    return Tuning(
        variance=variance,
        factor_shares=shares[:, :-2],
        pair_share=shares[:, -2],
        product_share=shares[:, -1],
        is_local=np.concatenate(local_by_block),
        is_dead=is_dead,
    )


def summarize_tuning(tuning: Tuning) -> Scores:
    """Averages over the units of one stage.

    Means and medians of shares count every live unit the same, weighted ones by
    its variance. `product_share` and `sum_share` are weighted shares of types.

    Returns:
        Numbers by name; None if no unit is alive or finite.
    """
    is_alive = ~tuning.is_dead
    sums = tuning.additive_share[is_alive]
    pairs = tuning.pair_share[is_alive]
    products = tuning.product_share[is_alive]
    weights = tuning.variance[is_alive]
    if not sums.size or not np.isfinite(sums).all():
        # As for one unit before anything is explained.
        nothing = np.full(1, np.nan)
        sums = nothing
        pairs = nothing
        products = nothing
        weights = np.ones(1)

    scores = {
        "additive_share_mean": np.mean(sums),
        "additive_share_median": np.median(sums),
        "additive_share_weighted": np.average(sums, weights=weights),
        "pair_share_mean": np.mean(pairs),
        "pair_share_weighted": np.average(pairs, weights=weights),
        "dead_unit_fraction": np.mean(tuning.is_dead),
    }
    scores |= _count_types(sums, products, weights)
    return make_scores(scores)


def _count_types(sums: Array, products: Array, weights: Array) -> Scores:
    """Computes the shares of units that are products, and sums.

    Args:
        sums: Share of the variance that the best sum explains, [units].
        products: Share that the best product explains, [units].
        weights: Of the units.
    """
    best = np.fmax(sums, products)
    counts = best >= TYPE_FLOOR
    if not counts.any() or np.isnan(products).any():
        return NO_TYPES
    gain = products[counts] - sums[counts]
    weights = weights[counts]
    product_share = np.average(gain > TYPE_MARGIN, weights=weights)
    sum_share = np.average(gain < -TYPE_MARGIN, weights=weights)
    return {
        "product_share": product_share,
        "sum_share": sum_share,
        "product_less_sum": product_share - sum_share,
    }


def summarize_shapes(tuning: Tuning) -> Scores:
    """Counts the shapes of the live units of one stage (figures 4e and 15).

    Every live unit counts the same, whatever its variance.

    Args:
        tuning: Of a stage over two factors.

    Returns:
        The share of each of `SHAPES`, as `bump_share`, which add up to 1; None
        if no unit is alive, or if one is not finite.
    """
    is_alive = ~tuning.is_dead
    shares = tuning.factor_shares[is_alive]
    products = tuning.product_share[is_alive]
    names = [f"{shape}_share" for shape in SHAPES]
    if not len(shares) or not np.isfinite(products).all():
        return dict.fromkeys(names)

    is_stripe_x = shares[:, 0] >= SHAPE_FLOOR
    is_stripe_y = shares[:, 1] >= SHAPE_FLOOR
    is_stripe = is_stripe_x | is_stripe_y
    is_product = products >= SHAPE_FLOOR
    is_bump = is_product & tuning.is_local[is_alive] & ~is_stripe
    is_other = ~is_stripe & ~is_bump
    masks = (is_stripe_x, is_stripe_y, is_bump, is_other)
    means = [float(mask.mean()) for mask in masks]
    return dict(zip(names, means, strict=True))


@features.single_threaded
def measure_effects(activations: Array, levels: Array) -> Array:
    """Measures how much units follow a factor: the variance of its means.

    Args:
        activations: One stage, [n, units].
        levels: The level of the factor at each point, [n].

    Returns:
        Over points, the variance of each unit's mean at the level, [units].
    """
    _, places, counts = np.unique(
        levels,
        return_inverse=True,
        return_counts=True,
    )
    is_at_level = places == np.arange(len(counts))[:, None]  # [levels, n]
    sums = is_at_level.astype(activations.dtype) @ activations
    means = sums / counts[:, None]
    center = np.average(means, axis=0, weights=counts)
    return np.average((means - center) ** 2, axis=0, weights=counts)


def select_units(activations: Array, variance: Array, count: int) -> Array:
    """Chooses the units that vary most and differ most.

    Args:
        activations: One stage, [n, ...].
        variance: Variance of every unit, [units].
        count: How many at most.

    Returns:
        Numbers of units.
    """
    num_points = len(activations)
    flat = np.reshape(activations, (num_points, -1))
    left = np.where(np.isfinite(variance), variance, 0.0)
    floor = DEAD_VARIANCE * left.max(initial=0.0)
    units: list[int] = []
    basis = np.empty((0, num_points))  # orthonormal, [k, n]
    while len(units) < count and left.max(initial=0.0) > floor:
        unit = int(np.argmax(left))
        units.append(unit)
        direction = flat[:, unit].astype(np.float64)
        direction = direction - direction.mean()
        # Twice, since one pass of Gram-Schmidt leaves rounding of the first.
        for _ in range(2):
            direction = direction - basis.T @ (basis @ direction)
        # Of a constant unit, the variance may be rounding alone.
        direction = direction / (np.linalg.norm(direction) or 1.0)
        basis = np.vstack([basis, direction])

        left -= _explain_variance(flat, direction)
        left[units] = 0.0
    return np.array(units, int)


@np.errstate(
    invalid="ignore",
    over="ignore",
)
def _explain_variance(flat: Array, direction: Array) -> Array:
    """Computes the variance [units] of a stage [n, units] along a direction."""
    products = []
    for part in iterate_units(flat):
        products.append(direction @ np.float64(part))
    along = np.nan_to_num(np.concatenate(products))
    return along**2 / len(flat)


@np.errstate(
    invalid="ignore",
    over="ignore",
)
def _decompose(block: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Decomposes the variance of some units.

    Args:
        block: Activations over the grid, [n, units].
        shape: Numbers of values of the factors.

    Returns:
        Variances [units], and parts of them [units, F + 2]: effects of the
        factors, of pairs, and the best product.
    """
    block = block.astype(np.float64)
    products = np.full(block.shape[1], np.nan)
    if len(shape) == 2:
        maps = block.reshape(*shape, -1)
        products = _fit_products(maps)

    # A row is taken off first, so that a constant unit is exactly zero.
    block -= block[0].copy()
    block -= block.mean(axis=0)
    squares = np.einsum("nu,nu->u", block, block)
    variance = squares / len(block)

    grid = block.reshape(*shape, block.shape[1])
    axes = tuple(range(len(shape)))
    effects = []
    parts = []
    for axis in axes:
        effect = _average_others(grid, [axis])
        effects.append(effect)
        parts.append(np.mean(effect**2, axis=axes))

    pairs = np.zeros_like(variance)
    for i, j in itertools.combinations(axes, 2):
        both = _average_others(grid, [i, j])
        both = both - effects[i] - effects[j]
        pairs += np.mean(both**2, axis=axes)
    return variance, np.stack([*parts, pairs, products], axis=1)


def _fit_products(maps: Array) -> Array:
    """Computes the variance [units] that the best product explains.

    Args:
        maps: Activations over two factors, [x, y, units].
    """
    grid = (0, 1)
    mean = np.mean(maps, axis=grid)
    nearer_end = _find_rest(maps)
    total = np.mean((maps - mean) ** 2, axis=grid)

    explained = []
    for rest in (mean, nearer_end):
        shifted = maps - rest
        squares = np.mean(shifted**2, axis=grid)
        explained.append(total - squares + _find_first(shifted))
    return np.max(explained, axis=0).clip(0.0, total)


def _find_rest(maps: Array) -> Array:
    """Finds the end of the range that is nearer to the mean, [units].

    Args:
        maps: Activations over two factors, [x, y, units].
    """
    grid = (0, 1)
    low = np.min(maps, axis=grid)
    high = np.max(maps, axis=grid)
    is_low = np.mean(maps, axis=grid) <= (low + high) / 2
    return np.where(is_low, low, high)


@np.errstate(
    invalid="ignore",
    over="ignore",
)
def _find_local(block: Array, shape: tuple[int, ...]) -> Array:
    """Marks units that are far from rest in a small part of the grid, [units].

    Args:
        block: Activations over the grid, [n, units].
        shape: Numbers of values of the factors; with other than two of them
            no unit is local.
    """
    is_local = np.zeros(block.shape[1], bool)
    if len(shape) != 2:
        return is_local

    values = block.astype(np.float64)
    maps = values.reshape(*shape, -1)
    from_rest = maps - _find_rest(maps)
    distance = np.abs(from_rest)
    farthest = distance.max(axis=(0, 1))
    is_far = distance > farthest / 2
    is_local = is_far.any(axis=(0, 1))
    for axis, size in enumerate(shape):
        is_reached = is_far.any(axis=1 - axis)  # [values, units]
        first = is_reached.argmax(axis=0)
        from_end = is_reached[::-1].argmax(axis=0)
        extent = size - first - from_end
        is_local &= extent <= size / 2
    return is_local


def _find_first(maps: Array) -> Array:
    """Computes mean squares [units] of the first singular component.

    Args:
        maps: Activations over two factors, [x, y, units].
    """
    lengths = np.sum(maps**2, axis=1)  # [x, units]
    longest = lengths.argmax(axis=0)
    units = np.arange(maps.shape[2])
    right = maps[longest, :, units].T  # [y, units]
    for _ in range(_ITERATIONS):
        norm = np.linalg.norm(right, axis=0)
        right = right / np.maximum(norm, 1e-300)
        left = np.einsum("xyu,yu->xu", maps, right)
        right = np.einsum("xyu,xu->yu", maps, left)
    # |M^T M v| for a unit v is the square of the singular value.
    square = np.linalg.norm(right, axis=0)
    return square / (len(maps) * maps.shape[1])


def _average_others(maps: Array, kept: list[int]) -> Array:
    """Averages maps [..., units] over all factors but the kept ones."""
    others = set(range(maps.ndim - 1)).difference(kept)
    return maps.mean(axis=tuple(others), keepdims=True)


@computes("stages", SHARE, "additive_share additive_share_weighted")
@computes(
    "stages",
    SHARE,
    chart=INTERACTIONS,
    interaction_share="interaction, share of variance: share of the variance "
    "over the grid that no sum of functions of single factors explains; it "
    "needs no derivative and sees kinks",
)
@computes(
    "stages",
    SHARE,
    "pair_share pair_share_weighted product_share sum_share",
)
@computes("stages", CORRELATION, "product_less_sum")
def measure_tuning(analysis: RunAnalysis) -> Rows:
    """Tests if units answer to one factor or to several (figures 4e, 15)."""
    num_factors = len(analysis.dataset.space)
    if num_factors < 2 or not analysis.splits.is_complete:
        return {}  # of one factor everything is additive

    rows: Rows = {}
    for stage, tuning in analysis.tuning.items():
        summary = summarize_tuning(tuning)
        share = summary["additive_share_weighted"]
        row: Scores = {
            "additive_share": summary["additive_share_mean"],
            "additive_share_weighted": share,
            "interaction_share": None,
        }
        if share is not None:
            row["interaction_share"] = 1 - share
        if num_factors == 2:
            for name in NO_TYPES:
                row[name] = summary[name]
        else:
            row["pair_share"] = summary["pair_share_mean"]
            row["pair_share_weighted"] = summary["pair_share_weighted"]
        rows[stage] = row
    return rows


@computes(
    "stages",
    SHARE,
    "stripe_x_share stripe_y_share bump_share other_share",
)
def measure_unit_shapes(analysis: RunAnalysis) -> Rows:
    """Counts stripes and bumps among units (figures 4e, 4f and 15)."""
    if not analysis.is_plane:
        return {}
    rows: Rows = {}
    for stage, tuning in analysis.tuning.items():
        rows[stage] = summarize_shapes(tuning)
    return rows


@computes(
    "stages",
    SHARE,
    chart=INTERACTIONS,
    mixed_share="mixed derivatives: share of mixed ones in the squares of all "
    "first and second derivatives (exact); 0 for a sum over factors. It sees "
    "no kinks: behind a code of single factors a network of ReLUs has 0 in "
    "every stage",
    relative_contrast="contrast of units: overlap of the units that two "
    "factors move; it depends on the axes: a plane turned by 45 degrees has "
    "the worst value",
)
@computes("stages", POSITIVE, "contrast")
@computes("stages", names="gaussian_curvature")
@computes(
    "stages",
    chart=CURVATURE,
    total_curvature="total curvature: integral of the Gaussian curvature over "
    "the surface that a stage makes of two factors, which does not depend on "
    "its size: 0 for a plane, also a rolled-up one, and 2π for half a sphere. "
    "It sees no kinks either",
)
def measure_interaction(analysis: RunAnalysis) -> Rows:
    """Tests whether a factor changes the effect of another on a stage."""
    return analysis.interactions
