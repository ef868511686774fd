"""Tuning of single units: maps, and how additive they are.

Figures 4e, 4f and 15, section 4.2 and appendix F.4 of the paper, where units
go from stripes (a function of one factor) to bumps (a conjunction of all).
Per unit, over the full grid of factors f = (f_1 ... f_F):

    h(f) = m + sum_i a_i(f_i) + interactions
    share of factor i = Var a_i / Var h
    additive share    = sum_i Var a_i / Var h          in [0, 1]

where m is the mean and a_i the mean over all other factors, less m: the main
effects of a balanced analysis of variance, which are orthogonal. A stripe, and
a sum of stripes, has an additive share of 1; a centered product of factors has
0; a Gaussian bump of unit width in the middle of a 28 x 28 grid has 0.22.
Variances are population variances over the grid. With one factor every share
is 1. The pair share is that of the interactions of two factors, and the rest
is of higher order.

The additive share also falls with the width of a unit: products of two
Gaussians have .11 to .93. Of two factors, the type of a unit does not depend
on it: which explains more of its variance, the best sum a(x) + b(y) or the
best product c + a(x) b(y) on its level of rest c (its mean, or the end of its
range that is nearer to its mean)? A level that is fitted would not do: on a
high one, every sum is nearly a product. A unit is of a type if that explains
at least half of its variance and by more than `TYPE_MARGIN` of it more than
the other does. A stripe is both, and so of no type; noise does not count.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.features import (
    finite_or_none,
    iterate_units,
    single_threaded,
)

# Smallest variance of a unit that counts, relative to the largest of its
# stage: a standard deviation of 1e-4 of the largest. Rounding of float32
# activations lies well below, and whatever lies between moves no later layer.
DEAD_VARIANCE = 1e-8
# Of the variance of a unit: by how much one type must explain more than the
# other, and what the better one must explain at least for the unit to count.
TYPE_MARGIN = 0.05
TYPE_FLOOR = 0.5
_ITERATIONS = 8
# Their maps, float64, stay in the cache of a processor.
_BLOCK_UNITS = 512


NO_TYPES: dict[str, float | None] = dict.fromkeys(
    ("product_share", "sum_share", "product_less_sum")
)


@dataclass(frozen=True)
class Tuning:
    """Tuning of the units of one stage.

    Attributes:
        variance: Of every unit over the grid, [units].
        factor_shares: Of every factor in it, [units, F]; NaN for dead units
            and for those with activations that are not finite.
        pair_share: Of the interactions of any two factors, [units] likewise.
        product_share: Of the best product, [units]; NaN unless of two factors.
        is_dead: Whether the variance is at most `DEAD_VARIANCE` of the
            largest one, [units].
    """

    shape: tuple[int, ...]
    variance: np.ndarray
    factor_shares: np.ndarray
    pair_share: np.ndarray
    product_share: np.ndarray
    is_dead: np.ndarray

    @property
    def additive_share(self) -> np.ndarray:
        """Sum of the shares of all factors, [units] in [0, 1] or NaN."""
        # The sum may leave the interval by an ulp.
        return np.minimum(self.factor_shares.sum(axis=1), 1.0)


def compute_tuning(activations: np.ndarray, shape: Sequence[int]) -> Tuning:
    """Decomposes the variance of every unit over a grid of a shape.

    Activations [n, ...] are those of one stage at every grid point, last
    factor fastest: n = prod(shape).
    """
    return combine_units([decompose_units(activations, shape)], shape)


def decompose_units(
    block: np.ndarray, shape: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Variance of units [n, units], and that of its effects, [units, F + 2].

    These are the main effects, the interactions of all pairs together, and the
    best product. In parts, to copy no more than a part.
    """
    shape = tuple(int(size) for size in shape)
    parts = iterate_units(_flatten(block, shape), _BLOCK_UNITS)
    found = [_decompose(part, shape) for part in parts]
    variances, effects = zip(*found, strict=True)
    return np.concatenate(variances), np.concatenate(effects)


def combine_units(
    decomposed: Sequence[tuple[np.ndarray, np.ndarray]], shape: Sequence[int]
) -> Tuning:
    """The tuning of a stage from what `decompose_units` gives of its blocks."""
    variance = np.concatenate([variance for variance, _ in decomposed])
    parts = np.concatenate([parts for _, parts in decomposed])
    is_finite = np.isfinite(variance)
    largest = variance[is_finite].max(initial=0.0)
    is_dead = is_finite & (variance <= DEAD_VARIANCE * largest)
    is_known = is_finite & ~is_dead
    shares = np.full_like(parts, np.nan)
    shares[is_known] = parts[is_known] / variance[is_known, None]
    sizes, (*factors, pairs, products) = tuple(map(int, shape)), shares.T
    return Tuning(
        sizes, variance, np.stack(factors, axis=1), pairs, products, is_dead
    )


def summarize_tuning(tuning: Tuning) -> dict[str, float | None]:
    """The numbers of one stage, None where no unit is alive or finite.

    The mean and the median of the additive share count every live unit the
    same; `additive_share_weighted`, by variance, is the additive part of the
    variance of the whole stage. `product_share` and `sum_share` are the shares
    of these types among the units that count, weighted by variance, and
    `product_less_sum` is their difference; None without such a unit.
    """
    share = tuning.additive_share[~tuning.is_dead]
    pairs = tuning.pair_share[~tuning.is_dead]
    weights = tuning.variance[~tuning.is_dead]
    is_known = bool(share.size) and np.isfinite(share).all()
    scores = {
        "additive_share_mean": np.mean(share) if is_known else None,
        "additive_share_median": np.median(share) if is_known else None,
        "additive_share_weighted": (
            np.average(share, weights=weights) if is_known else None
        ),
        "pair_share_mean": np.mean(pairs) if is_known else None,
        "pair_share_weighted": (
            np.average(pairs, weights=weights) if is_known else None
        ),
        "dead_unit_fraction": np.mean(tuning.is_dead),
        **(_summarize_types(tuning) if is_known else NO_TYPES),
    }
    return {name: finite_or_none(score) for name, score in scores.items()}


def _summarize_types(tuning: Tuning) -> dict[str, float | None]:
    sums = tuning.additive_share[~tuning.is_dead]
    products = tuning.product_share[~tuning.is_dead]
    counts = np.fmax(sums, products) >= TYPE_FLOOR
    if not counts.any() or np.isnan(products).any():
        return dict(NO_TYPES)
    gain, weights = (products - sums)[counts], tuning.variance[~tuning.is_dead]
    shares = [
        np.average(is_type, weights=weights[counts])
        for is_type in (gain > TYPE_MARGIN, gain < -TYPE_MARGIN)
    ]
    numbers = (*shares, shares[0] - shares[1])
    return dict(zip(NO_TYPES, numbers, strict=True))


@single_threaded
def select_units(
    activations: np.ndarray, variance: np.ndarray, count: int
) -> np.ndarray:
    """Chooses units that vary most and differ from each other.

    The first is the unit of the highest variance; each further one has the
    most variance left that is no linear function of the units chosen before.
    So the shifted and scaled copies that fill a convolution stage appear
    once. Equal units are taken in the order of their index.

    Of activations [n, ...] at every grid point, flattened to units, and the
    variance of every unit over the grid. Indices [k] into the units, in the
    order of choice; fewer than `count` if nothing else is left.
    """
    flat = np.reshape(activations, (len(activations), -1))
    variance = np.where(np.isfinite(variance), variance, 0.0)
    left = variance.copy()
    floor = DEAD_VARIANCE * variance.max(initial=0.0)
    chosen: list[int] = []
    basis = np.empty((0, len(flat)))  # orthonormal, [k, n]
    while len(chosen) < count and left.max(initial=0.0) > floor:
        chosen.append(int(np.argmax(left)))
        direction = _remove(flat[:, chosen[-1]].astype(np.float64), basis)
        basis = np.vstack([basis, direction])
        left -= _project(flat, direction) ** 2 / len(flat)
        left[chosen] = 0.0
    return np.array(chosen, int)


def _flatten(activations: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if not shape or len(activations) != np.prod(shape):
        raise ValueError(
            "shape must have sizes whose product is the number of "
            f"activations, {len(activations)}, received {shape}."
        )
    return np.reshape(activations, (len(activations), -1))


def _decompose(
    block: np.ndarray, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Variance of units [n, block] in total, and of its effects."""
    with np.errstate(invalid="ignore", over="ignore"):
        block = block.astype(np.float64)
        products = np.full(block.shape[1], np.nan)
        if len(shape) == 2:
            products = _fit_products(block.reshape(*shape, -1))
        # A row is taken off first, so that a constant unit is exactly zero.
        block -= block[0].copy()
        block -= block.mean(axis=0)
        variance = np.einsum("nu,nu->u", block, block) / len(block)
        grid = block.reshape(*shape, block.shape[1])
        axes = range(len(shape))
        effects = [_average_others(grid, [axis]) for axis in axes]
        parts = [_average_all(effect**2) for effect in effects]
        if len(shape) == 2:
            pairs = np.maximum(variance - sum(parts), 0.0)
        else:
            pairs = np.zeros_like(variance)
            for i, j in itertools.combinations(axes, 2):
                both = _average_others(grid, [i, j]) - effects[i] - effects[j]
                pairs += _average_all(both**2)
    return variance, np.stack([*parts, pairs, products], axis=1)


def _fit_products(maps: np.ndarray) -> np.ndarray:
    """Variance that the best product on a level of rest explains, [units].

    Of maps [x, y, units]. The best product is the first singular component.
    """
    low, high, mean = (f(maps, axis=(0, 1)) for f in (np.min, np.max, np.mean))
    rest = np.where(mean <= (low + high) / 2, low, high)
    total = np.mean((maps - mean) ** 2, axis=(0, 1))
    explained = [
        total - np.mean(shifted**2, axis=(0, 1)) + _find_first(shifted)
        for shifted in (maps - mean, maps - rest)
    ]
    return np.clip(np.max(explained, axis=0), 0.0, total)


def _find_first(maps: np.ndarray) -> np.ndarray:
    """Square of the first singular value over the number of points, [units]."""
    rows = np.argmax((maps**2).sum(axis=1), axis=0)  # the longest, [units]
    right = maps[rows, :, np.arange(maps.shape[2])].T  # [y, units]
    for _ in range(_ITERATIONS):
        right = right / np.maximum(np.linalg.norm(right, axis=0), 1e-300)
        left = np.einsum("xyu,yu->xu", maps, right)
        right = np.einsum("xyu,xu->yu", maps, left)
    # |M^T M v| for a unit v is the square of the singular value.
    return np.linalg.norm(right, axis=0) / (len(maps) * maps.shape[1])


def _average_others(maps: np.ndarray, kept: list[int]) -> np.ndarray:
    # The mean over the other factors, whose axes stay, of length one.
    others = tuple(a for a in range(maps.ndim - 1) if a not in kept)
    return maps.mean(axis=others, keepdims=True)


def _average_all(maps: np.ndarray) -> np.ndarray:
    return maps.mean(axis=tuple(range(maps.ndim - 1)))


def _remove(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
    # Twice, since one pass of Gram-Schmidt leaves rounding of the first.
    direction = values - values.mean()
    for _ in range(2):
        direction = direction - basis.T @ (basis @ direction)
    return direction / np.linalg.norm(direction)


def _project(flat: np.ndarray, direction: np.ndarray) -> np.ndarray:
    # A centered direction does not see the mean of a unit.
    with np.errstate(invalid="ignore", over="ignore"):
        projections = [
            direction @ part.astype(np.float64) for part in iterate_units(flat)
        ]
    return np.nan_to_num(np.concatenate(projections))  # [units]
