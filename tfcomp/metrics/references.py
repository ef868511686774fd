"""Predictors without a network, and distances over the grid of factors.

mean_image         the mean training image
additive           the mean image and an effect of every value of every
                   factor, per pixel: least squares over training images, of
                   all solutions the shortest (a value that they lack adds
                   nothing)
nearest_id         a training image: of those with the fewest differing
                   factors the first one whose grid steps have the least sum
mean_over_<factor> the mean of the true images over all values of the factor
                   (of more than `MAX_VALUES`, over a fixed sample)
modulo_<factor>    the true image where values that look the same in training
                   are merged

A decoder that is no better than a predictor which ignores a factor has not
composed it. These two know the true images, also held-out ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.datasets.dataset import MAX_AVERAGED, Dataset
from tfcomp.datasets.factors import Factor, FactorSpace, find_rows
from tfcomp.datasets.solvable import mark_certified
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.features import single_threaded
from tfcomp.metrics.registry import (
    Arrays,
    Scores,
    computes,
    finite_or_none,
    mean_or_none,
)
from tfcomp.metrics.scores import (
    TINY,
    Evaluation,
    compute_both_mse,
    compute_mse,
)
from tfcomp.statistics.limits import CORRELATION, POSITIVE

if TYPE_CHECKING:
    from tfcomp.datasets.solvable import Certificate
    from tfcomp.metrics.run_analysis import RunAnalysis

References = dict[str, dict[str, float]]

_BLOCK = 64  # points whose distances are held at a time
# Training points among which the nearest is searched.
MAX_TRAINED = 2**16
MAX_VALUES = 16  # of a factor that is averaged over


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
            column[:] = np.minimum(column, factor.cycle - column)
    return offsets


def find_nearest(index: Array, candidates: Array, space: FactorSpace) -> Array:
    """Finds the nearest of some points, as in `nearest_id`.

    Args:
        index: Grid indices, [m, F].
        candidates: Grid indices among which the nearest is searched, [n, F].
        space: The factors.

    Returns:
        Rows of candidates, [m].
    """
    all_steps = sum(space.shape)
    nearest = []
    for start in range(0, len(index), _BLOCK):
        block = index[start : start + _BLOCK]
        distances = np.zeros((len(block), len(candidates)))
        for column, factor in enumerate(space):
            # Values are compared, not points: many points share them.
            values, places = np.unique(block[:, column], return_inverse=True)
            others = candidates[:, column, None]
            for number, value in enumerate(values):
                offsets = compute_offsets(others, value, [factor])
                steps = offsets[:, 0]
                # A differing factor is more than all steps.
                steps += all_steps * (steps > 0)
                distances[places == number] += steps
        nearest.append(distances.argmin(axis=1))
    return np.concatenate(nearest)


@single_threaded
def fit_effects(index: Array, sizes: Sequence[int], images: Array) -> Array:
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
    products = design.T @ design
    inverse = np.linalg.pinv(products, hermitian=True)
    sums = design.T @ (flat - mean)
    return np.vstack([mean, inverse @ sums])


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
    is_id = ~is_ood.reshape(space.shape)
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

    on_grid = tuple([slice(size) for size in space.shape])
    return steps[on_grid].ravel()


def _grow(reached: Array, space: FactorSpace) -> Array:
    """Adds the points that are one step along any factors from a mask."""
    for axis, factor in enumerate(space):
        if factor.categorical:  # all classes are one step apart
            reached = reached | reached.any(axis, keepdims=True)
            continue
        mode = "nearest"
        if factor.periodic:
            mode = "wrap"
        reached = scipy.ndimage.maximum_filter1d(
            reached,
            size=3,
            axis=axis,
            mode=mode,
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
    is_finite = np.isfinite([error, distance]).all()
    if len(error) <= 2 or not is_finite:
        return None
    if np.ptp(error) == 0 or np.ptp(distance) == 0:
        return None
    result = scipy.stats.spearmanr(distance, error)
    return float(result.statistic)


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


def find_levels(dataset: Dataset) -> Array:
    """Counts factors that differ between points and the nearest ID point."""
    space = dataset.space
    index = space.to_index(dataset.splits.grid)
    train_index = space.to_index(sample_training_points(dataset))
    trained = np.unique(train_index, axis=0)

    nearest = trained[find_nearest(index, trained, space)]
    return np.count_nonzero(index != nearest, axis=1)


def list_levels(dataset: Dataset) -> Iterator[tuple[str, str, Array]]:
    """Lists the parts of the grid that scores of factors are means over.

    Yields:
        The subset, `id` or `ood`; the level, `any` or the number of factors in
        which points differ from the nearest ID point; and a mask of the grid.
    """
    subsets = dataset.splits.subsets
    for subset, mask in subsets.items():
        if mask.any():
            yield subset, "any", mask

    # Stripes lack x or y.
    if not len(sample_training_points(dataset)):
        return
    levels = find_levels(dataset)
    for subset, mask in subsets.items():
        for level in np.unique(levels[mask]):
            yield subset, str(level), mask & (levels == level)


def sample_training_points(dataset: Dataset) -> Array:
    """Samples training points without NaN, always the same ones, [m, F]."""
    rows = _choose_training_rows(dataset)
    return dataset.splits.train[rows]


def _choose_training_rows(dataset: Dataset) -> Array:
    """Chooses rows of the training table for `sample_training_points`, [m]."""
    train = dataset.splits.train
    is_complete = np.isfinite(train).all(axis=1)
    rows = np.flatnonzero(is_complete)
    sample = choose_rows(len(rows), MAX_TRAINED)
    return rows[sample]


def predict_references(dataset: Dataset) -> Arrays:
    """Predicts images at every grid point without a network, [n, H, W, C].

    Where a combination has several images, the additive predictor is the best
    fit to single training images, and the nearest combination is shown by its
    mean image: no other copy has a lower error.
    """
    space = dataset.space
    train_rows = _choose_training_rows(dataset)
    if not len(train_rows):
        return {}

    train = dataset.splits.train[train_rows]
    train_index = space.to_index(train)
    index = space.to_index(dataset.splits.grid)
    rows = choose_rows(len(train), MAX_AVERAGED)
    images = dataset.render_training(train_rows[rows])
    effects = fit_effects(train_index[rows], space.shape, images)
    nearest = find_nearest(index, train_index, space)
    design = make_design(index, space.shape)
    mean_image = effects[0]

    predictions = {
        "mean_image": np.tile(mean_image, (len(index), 1)),
        "additive": design @ effects,
        "nearest_id": dataset.render_array(train[nearest]),
    }
    shape = (-1, *dataset.image_shape)
    for name, flat in predictions.items():
        predictions[name] = flat.reshape(shape)
    return predictions


def score_references(dataset: Dataset, truth: Array) -> References:
    """Scores predictors without a network.

    Args:
        dataset: Has the split.
        truth: True images over the grid, [n, H, W, C].

    Returns:
        Relative MSE, and R^2 about the mean true image (`<subset>_r2`), by
        predictor and subset. Predictors that ignore a factor have OOD scores.
    """
    splits = dataset.splits
    scores = score_predicted(dataset, truth)
    subsets = _list_subsets(dataset)

    del subsets["id"]
    is_ood = splits.is_ood
    held_out = {}
    for name, mask in subsets.items():
        held_out[name] = mask[is_ood]
    points = splits.grid[is_ood]
    truth = truth[is_ood]
    for name, substitutes in list_ignorant(dataset):
        images = average_images(dataset, substitutes)
        numbers = _score(
            dataset,
            points,
            images,
            truth,
            held_out,
        )
        if numbers.get("ood", 1.0) > TINY:  # else no image shows the factor
            scores[name] = numbers
    return scores


def score_predicted(dataset: Dataset, truth: Array) -> References:
    """Scores the predictors of `predict_references`, as `score_references`.

    Args:
        dataset: Has the split.
        truth: True images over the grid, [n, H, W, C].
    """
    scores = {}
    for name, images in predict_references(dataset).items():
        scores[name] = _score(
            dataset,
            dataset.splits.grid,
            images,
            truth,
            _list_subsets(dataset),
        )
    return scores


def _list_subsets(dataset: Dataset) -> Arrays:
    """Lists masks of ID and OOD points, and of new ones if some are copies."""
    splits = dataset.splits
    is_copy = dataset.copies.is_copy
    subsets = splits.subsets
    if is_copy.any():
        is_old = dataset.select_points(is_copy)
        subsets["ood_new"] = splits.is_ood & ~is_old
    return subsets


def list_ignorant(dataset: Dataset) -> Iterator[tuple[str, list[Array]]]:
    """Lists predictors that ignore a factor, or merge values of it.

    Left out are those that need combinations which do not exist.

    Yields:
        Names, and sets of points [n_ood, F]: the mean of their images stands
        for the images of the held-out points.
    """
    splits = dataset.splits
    space = dataset.space
    points = splits.grid[splits.is_ood]
    index = space.to_index(points)
    train = space.to_index(splits.train)
    for column, factor in enumerate(space):
        values = factor.values()
        averaged = values[choose_rows(len(values), MAX_VALUES)]
        substitutes = [_replace(points, column, value) for value in averaged]
        if len(averaged) > 1 and _all_exist(dataset, substitutes):
            yield f"mean_over_{factor.name}", substitutes

        trained = train[:, column]
        present = trained[trained >= 0]
        merged = _merge_values(
            values,
            index=index[:, column],
            counts=np.bincount(present, minlength=factor.size),
            groups=dataset.copies.aliases.get(factor.name, []),
        )
        is_merged = ~np.isnan(merged)
        replaced = _replace(
            points,
            column,
            np.where(is_merged, merged, points[:, column]),
        )
        if (replaced == points).all():
            continue
        if _all_exist(dataset, [replaced]):
            yield f"modulo_{factor.name}", [replaced]


def _replace(points: Array, column: int, values: Array | float) -> Array:
    """Copies points [n, F] with other values of one factor."""
    replaced = points.copy()
    replaced[:, column] = values
    return replaced


def _all_exist(dataset: Dataset, sets: Sequence[Array]) -> bool:
    """Tests if all points of some sets exist.

    Args:
        dataset: Has the combinations that exist.
        sets: Points on the grid, [n, F] each.
    """
    space = dataset.space
    existing = dataset.splits.all.factors
    # A complete grid is not searched, which would take seconds. As many points
    # of continuous factors are no grid.
    has_size = len(existing) == math.prod(space.shape)
    if has_size and np.array_equal(existing, space.grid()):
        return True

    places = find_rows(np.concatenate(sets), existing)
    return bool((places >= 0).all())


def average_images(dataset: Dataset, sets: Sequence[Array]) -> Array:
    """Averages the true images of several sets of points, [n, H, W, C].

    Args:
        dataset: Draws the images.
        sets: Points, [n, F] each.
    """
    total = np.zeros((len(sets[0]), *dataset.image_shape))
    for points in sets:
        # Points that differ in the averaged factor alone are equal now.
        distinct, places = np.unique(points, axis=0, return_inverse=True)
        images = dataset.render_array(distinct)
        total += images[places.ravel()]
    return total / len(sets)


def _merge_values(
    values: Array,
    index: Array,
    counts: Array,
    groups: Sequence[Array],
) -> Array:
    """Replaces values that are merged by the most frequent one among them.

    Args:
        values: Values of a factor, in order.
        index: Which of them points have, [n].
        counts: How often training images have each of them.
        groups: Values that are merged with each other, a group each.

    Returns:
        The value that stands for the one of each point, [n]; NaN if none does.
    """
    substitutes = np.full(len(index), np.nan)
    for group in groups:
        distance = np.abs(values[:, None] - group)
        merged = distance.argmin(axis=0)
        most_frequent = merged[counts[merged].argmax()]
        is_merged = np.isin(index, merged)
        substitutes[is_merged] = values[most_frequent]
    return substitutes


def _score(
    dataset: Dataset,
    points: Array,
    images: Array,
    truth: Array,
    subsets: Arrays,
) -> dict[str, float]:
    """Computes relative MSE and R^2 over subsets of points.

    Args:
        dataset: Has the reference image.
        points: The points, [n, F].
        images: Predictions there, [n, H, W, C].
        truth: True images, [n, H, W, C].
        subsets: Masks of points by name, [n] each.
    """
    error, blank = compute_both_mse(dataset, points, images, truth)
    scores = {}
    for name, rows in subsets.items():
        if not blank[rows].any():
            continue
        mean_error = error[rows].mean()
        mean_blank = blank[rows].mean()
        scores[name] = float(mean_error / mean_blank)

        targets = truth[rows]
        mean_image = targets.mean(axis=0)
        distance = compute_mse(
            dataset,
            points[rows],
            mean_image,
            targets,
        )
        variance = distance.mean()
        if variance > TINY * mean_blank:
            scores[f"{name}_r2"] = float(1 - mean_error / variance)
    return scores


def score_certified(
    dataset: Dataset,
    evaluation: Evaluation,
    certificate: Certificate | None,
) -> Scores:
    """Computes R^2 over ID, OOD, and OOD certified at order 1 or not.

    Args:
        dataset: Has the split.
        evaluation: Outputs and truth over the grid.
        certificate: Says which combinations training images determine; None
            leaves the two parts of OOD out.
    """
    subsets = dataset.splits.subsets
    if certificate is not None:
        marks = mark_certified(dataset, certificate)
        subsets["certified"] = marks == 1
        subsets["others"] = marks == 0
    scores = _score(
        dataset,
        dataset.splits.grid,
        evaluation.images,
        evaluation.truth,
        subsets,
    )
    r2 = {}
    for name, rows in subsets.items():
        if rows.any():
            r2[name] = finite_or_none(scores.get(f"{name}_r2"))
    return r2
