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
    points: Array,
    point: Array,
    space: Iterable[Factor],
) -> Array:
    """Counts grid steps from one index to others, by factor.

    Args:
        points: Grid indices, [n, F].
        point: One grid index, [F].
        space: The factors.

    Returns:
        Steps, [n, F]; different classes are one step apart.
    """
    offsets = np.abs(points - point)
    for column, factor in zip(offsets.T, space, strict=True):
        if factor.categorical:
            column[:] = column > 0
        elif factor.periodic:
            np.minimum(column, factor.cycle - column, out=column)
    return offsets


def find_nearest(
    index: Array,
    known: Array,
    space: FactorSpace,
) -> Array:
    """Finds the nearest of the known points, as in `nearest_id`.

    Args:
        index: Grid indices, [m, F].
        known: Grid indices among which the nearest is searched, [n, F].
        space: The factors.

    Returns:
        Rows of known points, [m].
    """
    nearest = []
    for start in range(0, len(index), _BLOCK):
        block = index[start : start + _BLOCK]
        distances = np.zeros((len(block), len(known)))
        for column, factor in enumerate(space):
            # Values are compared, not points: many points share them.
            values, places = np.unique(block[:, column], return_inverse=True)
            others = known[:, column, None]
            for number, value in enumerate(values):
                steps = compute_offsets(others, value, [factor])[:, 0]
                # A differing factor is more than all steps.
                steps += sum(space.shape) * (steps > 0)
                distances[places == number] += steps
        nearest.append(distances.argmin(axis=1))
    return np.concatenate(nearest)


@single_threaded
def fit_effects(
    index: Array,
    sizes: Sequence[int],
    images: Array,
) -> Array:
    """Fits the additive predictor: the mean image, and effects of values.

    Args:
        index: Grid indices, [n, F].
        sizes: Numbers of values of the factors.
        images: Images at these points, [n, ...].

    Returns:
        Mean and effects, [1 + sum(sizes), pixels].
    """
    flat = images.reshape(len(images), -1).astype(np.float64)
    mean = flat.mean(axis=0)
    design = make_design(index, sizes)[:, 1:]
    inverse = np.linalg.pinv(design.T @ design, hermitian=True)
    effects = inverse @ (design.T @ (flat - mean))
    return np.vstack([mean, effects])


def make_design(index: Array, sizes: Sequence[int]) -> Array:
    """Makes the matrix that `fit_effects` is multiplied with.

    Args:
        index: Grid indices, [n, F].
        sizes: Numbers of values of the factors.

    Returns:
        Ones for the mean and for the value of each factor,
        [n, 1 + sum(sizes)].
    """
    columns = [np.ones((len(index), 1))]
    for size, values in zip(sizes, index.T, strict=True):
        columns.append(np.eye(size)[values])
    return np.hstack(columns)


def compute_border_distance(is_ood: Array, space: FactorSpace) -> Array:
    """Computes the largest step along a factor to the nearest ID point.

    Args:
        is_ood: Which points of the grid are held out, [n].
        space: The factors.

    Returns:
        Steps, [n]; 0 at ID points, infinite without any.
    """
    is_id = ~np.asarray(is_ood, bool).reshape(space.shape)
    # The part of a period without values takes steps, too.
    absent = [(0, max(0, factor.cycle - factor.size)) for factor in space]
    reached = np.pad(is_id, absent)
    new = reached
    steps = np.full(reached.shape, np.inf)
    step = 0
    while new.any():
        steps[new] = step
        grown = _grow(reached, space)
        new = grown & ~reached
        reached = grown
        step += 1

    on_grid = tuple(slice(size) for size in space.shape)
    return steps[on_grid].ravel()


def _grow(reached: Array, space: FactorSpace) -> Array:
    """Adds the points that are one step along any factors from a mask."""
    for axis, factor in enumerate(space):
        if factor.categorical:  # all classes are one step apart
            reached = reached | reached.any(axis, keepdims=True)
        else:
            reached = scipy.ndimage.maximum_filter1d(
                reached,
                size=3,
                axis=axis,
                mode="wrap" if factor.periodic else "nearest",
            )
    return reached


def correlate_with_distance(error: Array, distance: Array) -> float | None:
    """Computes the rank correlation of OOD errors and distances.

    Args:
        error: At every point, [n].
        distance: Grid steps to ID, [n]; ID points do not count.

    Returns:
        Spearman's correlation; None where one side does not vary.
    """
    is_ood = distance > 0
    error = error[is_ood]
    distance = distance[is_ood]
    if len(error) <= 2 or not np.isfinite([error, distance]).all():
        return None
    if np.ptp(error) == 0 or np.ptp(distance) == 0:
        return None
    return float(scipy.stats.spearmanr(distance, error).statistic)


@computes("run", CORRELATION, "border_rank_correlation")
@computes(
    "run",
    POSITIVE,
    "border_relative_mse",
    better="low",
)
def measure_border(analysis: RunAnalysis) -> dict[str, Any]:
    """Relates the OOD error to the distance to ID (section 3.2)."""
    if not analysis.splits.is_ood.any():
        return {}
    error = analysis.error_ratio
    distance = analysis.border_distance
    if np.isinf(distance).all():
        return {}  # too many combinations to count steps

    last = int(distance[np.isfinite(distance)].max())
    means = []
    for step in range(1, last + 1):
        means.append(mean_or_none(error[distance == step]))
    return {
        "border_rank_correlation": correlate_with_distance(error, distance),
        "border_relative_mse": means,
    }
