"""Distances over the grid of factors, and predictors from known images.

They are baselines for a decoder, beside the mean image:

additive     the mean image and an effect of every value of every factor, per
             pixel: least squares over training images, of all solutions
             the shortest (a value that they lack adds nothing)
nearest_id   a training image: of those with the fewest differing factors
             the first one whose grid steps have the least sum
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.metrics.features import mean_or_none, single_threaded
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import CORRELATION, POSITIVE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

_BLOCK = 64  # points whose distances are held at a time


def compute_offsets(
    points: Array, point: Array, space: Iterable[Factor]
) -> Array:
    """Returns grid steps from one index [F] to others by factor, [n, F]."""
    offsets = np.abs(points - point)
    for column, factor in zip(offsets.T, space, strict=True):
        if factor.categorical:
            column[:] = column > 0
        elif factor.periodic:
            np.minimum(column, factor.cycle - column, out=column)
    return offsets


def find_nearest(index: Array, known: Array, space: FactorSpace) -> Array:
    """Returns rows of the nearest known grid indices [n, F], for [m, F]."""
    nearest = []
    for start in range(0, len(index), _BLOCK):
        block = index[start : start + _BLOCK]
        distances = np.zeros((len(block), len(known)))
        for column, factor in enumerate(space):
            # Values are compared, not points: many points share them.
            values, rows = np.unique(block[:, column], return_inverse=True)
            others = known[:, column, None]
            for number, value in enumerate(values):
                steps = compute_offsets(others, value, (factor,))[:, 0]
                # A differing factor is more than all steps.
                steps += sum(space.shape) * (steps > 0)
                distances[rows == number] += steps
        nearest.append(distances.argmin(axis=1))
    return np.concatenate(nearest)


@single_threaded
def fit_effects(index: Array, sizes: Sequence[int], images: Array) -> Array:
    """Returns mean and effects of images [n, ...], [1 + sum(sizes), pixels]."""
    flat = images.reshape(len(images), -1).astype(np.float64)
    mean = flat.mean(axis=0)
    design = make_design(index, sizes)[:, 1:]
    inverse = np.linalg.pinv(design.T @ design, hermitian=True)
    return np.vstack([mean, inverse @ (design.T @ (flat - mean))])


def make_design(index: Array, sizes: Sequence[int]) -> Array:
    """Returns ones for the mean and for values, [n, 1 + sum(sizes)]."""
    pairs = zip(sizes, index.T, strict=True)
    codes = [np.eye(size)[column] for size, column in pairs]
    return np.hstack([np.ones((len(index), 1)), *codes])


def compute_border_distance(is_ood: Array, space: FactorSpace) -> Array:
    """Returns the largest step along a factor to the nearest ID point."""
    known = ~np.asarray(is_ood, bool).reshape(space.shape)
    # The part of a period without values takes steps, too.
    absent = [max(0, factor.cycle - factor.size) for factor in space]
    reached = new = np.pad(known, [(0, count) for count in absent])
    steps, step = np.full(reached.shape, np.inf), 0
    while new.any():
        steps[new], before = step, reached
        for axis, factor in enumerate(space):
            if factor.categorical:  # all classes are one step apart
                reached = reached | reached.any(axis, keepdims=True)
                continue
            mode = "wrap" if factor.periodic else "nearest"
            reached = scipy.ndimage.maximum_filter1d(
                reached, 3, axis, mode=mode
            )
        new, step = reached & ~before, step + 1
    on_grid = tuple(slice(size) for size in space.shape)
    return steps[on_grid].ravel()


def correlate_with_distance(error: Array, distance: Array) -> float | None:
    """Returns the rank correlation of OOD errors and distances [n]."""
    chosen = distance > 0
    error, distance = error[chosen], distance[chosen]
    is_known = len(error) > 2 and np.isfinite([error, distance]).all()
    if not is_known or np.ptp(error) == 0 or np.ptp(distance) == 0:
        return None
    return float(scipy.stats.spearmanr(distance, error).statistic)


@computes("run", CORRELATION, "border_rank_correlation")
@computes("run", POSITIVE, "border_relative_mse", better="low")
def measure_border(analysis: RunAnalysis) -> dict[str, Any]:
    """Relates the OOD error to the distance to ID (section 3.2)."""
    if not analysis.splits.is_ood.any():
        return {}
    error, distance = analysis.error_ratio, analysis.border_distance
    if np.isinf(distance).all():
        return {}  # too many combinations to count steps
    last = int(distance[np.isfinite(distance)].max())
    return {
        "border_rank_correlation": correlate_with_distance(error, distance),
        "border_relative_mse": [
            mean_or_none(error[distance == step]) for step in range(1, last + 1)
        ],
    }
