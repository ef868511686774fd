"""Distances of held-out points to known ones, and their errors.

Section 3.2 of the paper: some codes generalize near the border of the region,
where bumps overlap with those that were trained on.
"""

import numpy as np
import scipy

from tfcomp.datasets.factors import FactorSpace


def compute_border_distance(
    is_ood: np.ndarray, space: FactorSpace
) -> np.ndarray:
    """Returns grid steps from every grid point to the nearest ID point.

    The distance is the largest along a factor; a periodic factor goes on behind
    its last value, and any other class of a categorical one is one step away.
    Both arrays are [prod(space.shape)]; ID points have 0, and all points
    infinity if none is ID.
    """
    ordered = list(space.ordered)
    names = [i for i in range(len(space)) if i not in ordered]
    mask = np.asarray(is_ood, bool).reshape(space.shape)
    slices = mask.transpose(names + ordered)
    sizes = slices.shape[len(names) :]
    # One copy of the grid on either side of a periodic factor is enough.
    before = [
        size if space.factors[i].periodic else 0
        for i, size in zip(ordered, sizes, strict=True)
    ]
    pairs = zip(before, sizes, strict=True)
    inner = tuple(slice(start, start + size) for start, size in pairs)
    steps = np.full(slices.shape, np.inf)
    for point in np.ndindex(slices.shape[: len(names)]):
        if slices[point].all():
            continue
        steps[point] = 0.0
        if ordered:
            wrapped = np.pad(slices[point], [(n, n) for n in before], "wrap")
            steps[point] = scipy.ndimage.distance_transform_cdt(
                wrapped, "chessboard"
            )[inner]
    # Through another class: the shortest way of all, but at least one step.
    classes = tuple(range(len(names)))
    others = np.maximum(steps.min(axis=classes, keepdims=True), 1.0)
    steps = np.where(slices, np.minimum(steps, others), 0.0)
    return steps.transpose(np.argsort(names + ordered)).ravel()


def correlate_with_distance(
    error: np.ndarray, distance: np.ndarray
) -> float | None:
    """Returns the rank correlation of OOD error and distance to ID, [n] each.

    None for fewer than three OOD points, equal numbers, or one not finite.
    """
    chosen = distance > 0
    error, distance = error[chosen], distance[chosen]
    is_known = len(error) > 2 and np.isfinite([error, distance]).all()
    if not is_known or np.ptp(error) == 0 or np.ptp(distance) == 0:
        return None
    return float(scipy.stats.spearmanr(distance, error).statistic)
