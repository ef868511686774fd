"""Inverts a decoder: finds the factors of true images by what it draws.

A decoder that composes can be used to perceive: the factors of an image x are

    z*(x) = argmin_z ||g(z) - x||^2                       (arXiv 2512.08854)

The search takes the nearest output over the grid, and then at most ten steps of
Gauss and Newton with the exact Jacobian, along ordered factors. Beside the
decoder stand the *truth* as a decoder (its share is a ceiling, since images of
several combinations may be equal) and the nearest training image.

Do not take a share of found factors for a quality of images: a decoder that
draws faint images in the right places is inverted well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.metrics.jacobians import (
    find_nondifferentiable,
    is_flat,
    list_jacobians,
)
from tfcomp.metrics.output_analysis import OutputAnalysis
from tfcomp.metrics.references import list_levels
from tfcomp.metrics.registry import Arrays, median_or_none
from tfcomp.models.loading import IMAGE
from tfcomp.models.registry import (
    JacobianFn,
    StageDict,
    StageFn,
    evaluate_in_batches,
    make_stage_model,
)

MAX_IMAGES = 20_000  # true images whose factors are searched
MAX_STEPS = 10
CONVERGED = 0.01  # of a grid step
SHORTEST = 0.2  # share of a step that is tried
DEAD = 1e-6  # share of the largest eigenvalue of a metric
ROUNDING = 1e-4  # of a grid step, of values in float32
MODEL = "model"
ON_GRID = "model on the grid"
TRUTH = "truth"
NEAREST = "nearest training image"
Row = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """True images, and what they show.

    Attributes:
        images: Single images, [m, H, W, C].
        rows: Row of the grid of each, [m].
        points: Values of their factors, [m, F].
    """

    images: Array
    rows: Array
    points: Array


@dataclass(frozen=True)
class Inversion:
    """What was found in true images.

    Attributes:
        rows: The table: for each `source`, `subset`, `level` and `factor` the
            shares of images in which the factor is `found` within half a step,
            and `near` within one; the median `error` in steps; and for all
            factors together the median `condition`.
        error: Of the model at each point, [n]: the largest error of a factor in
            steps, infinite for another class; the mean over images.
    """

    rows: list[Row]
    error: Array


def list_targets(dataset: Dataset) -> Target:
    """Lists single true images of all points, a sample if there are many."""
    grid = dataset.splits.grid
    images, rows = dataset.render_all(grid, MAX_IMAGES)
    return Target(images, rows, grid[rows])


def invert_model(
    analysis: OutputAnalysis,
    target: Target,
    answers: Mapping[str, Array],
) -> Inversion:
    """Finds the factors of true images by a model, and by its rivals.

    Args:
        analysis: Of the model.
        target: The images.
        answers: Factors [m, F] that others found in these images, by source.

    Returns:
        Errors of all of them. `MODEL` is the search over the grid, where the
        model has no derivatives, else what follows it; the search alone is
        `ON_GRID` then.
    """
    dataset = analysis.dataset
    grid = dataset.splits.grid
    images = target.images
    outputs = analysis.evaluation.images
    start = grid[_find_nearest(images, outputs)]
    sources = {MODEL: start}
    conditions = {}
    refined = refine(
        analysis.model,
        dataset,
        images,
        start,
    )
    if refined is not None:
        sources[MODEL], conditions[MODEL] = refined
        sources[ON_GRID] = start

    truth = analysis.evaluation.truth
    sources[TRUTH] = grid[_find_nearest(images, truth)]
    splits = dataset.splits
    is_trained = splits.is_id & ~splits.points.is_test
    if is_trained.any():
        places = _find_nearest(images, truth[is_trained])
        sources[NEAREST] = grid[is_trained][places]
    sources.update(answers)

    rows = []
    errors = {}
    for source, points in sources.items():
        steps = count_steps(dataset.space, points, target.points)
        condition = conditions.get(source)
        errors[source] = steps
        rows += _tabulate(
            dataset,
            target,
            source,
            steps,
            condition,
        )

    largest = errors[MODEL].max(axis=1)
    sums = np.bincount(target.rows, weights=largest)
    counts = np.bincount(target.rows)
    return Inversion(rows, sums / counts)


def _find_nearest(images: Array, outputs: Array) -> Array:
    """Finds the nearest of the outputs [n, ...] of each image [m, ...], [m]."""
    from sklearn import metrics

    flat_images = images.reshape(len(images), -1)
    flat_outputs = outputs.reshape(len(outputs), -1)
    flat_outputs = np.nan_to_num(flat_outputs)
    return metrics.pairwise_distances_argmin(flat_images, flat_outputs)


def refine(
    model: keras.Model,
    dataset: Dataset,
    images: Array,
    start: Array,
) -> tuple[Array, Array] | None:
    """Follows the error downhill from factors, along ordered ones.

    A step that does not lower the error is halved. Values stay in the range of
    the grid; values of periodic factors wrap.

    Args:
        model: From factors to images.
        dataset: Has the factors.
        images: True images, [m, H, W, C].
        start: Factors, [m, F].

    Returns:
        Factors [m, F], and the condition of the decoder there, [m]: the
        smallest eigenvalue of its metric tensor, per grid step, over the
        largest. None for a model that is not differentiable.
    """
    space = dataset.space
    exact, differences = list_jacobians(model, space)
    if exact is differences:  # behind a code of steps
        return None
    measure = _trace(
        make_stage_model(model, [IMAGE]),
        exact,
        images,
        num_columns=len(space) + 1,
    )
    points = start.copy()
    every_image = np.arange(len(points))
    state = _measure(measure, points, every_image)
    flat = is_flat(state["metric"])
    if flat.all():
        return None
    if flat.any() and IMAGE in find_nondifferentiable(model, dataset):
        return None

    steps = [space.factors[column].step for column in space.directions]
    scale = np.array(steps)
    _descend(
        measure,
        space,
        points,
        state,
        scale,
    )
    return points, _compute_condition(state["metric"], scale)


def _descend(
    measure: StageFn,
    space: FactorSpace,
    points: Array,
    state: Arrays,
    scale: Array,
) -> None:
    """Takes Gauss-Newton steps, and halves those that do not lower the error.

    Args:
        measure: As `_trace` makes it.
        space: The factors.
        points: Factors [m, F], which are moved in place.
        state: Error, slope and metric there, which are replaced in place.
        scale: Steps of the ordered factors, [D].
    """
    length = np.ones(len(points))
    for _ in range(MAX_STEPS):
        direction = _solve(state, scale) * length[:, None]
        longest = np.abs(direction).max(axis=1)
        is_active = (longest > CONVERGED) & (length > SHORTEST)
        active = np.flatnonzero(is_active)
        if not len(active):
            break
        change = direction[active] * scale
        trial = _move(space, points[active], change)
        trial_state = _measure(measure, trial, active)

        is_better = trial_state["error"] < state["error"][active]
        better = active[is_better]
        length[active] /= 2
        length[better] = 1
        points[better] = trial[is_better]
        for name, values in state.items():
            values[better] = trial_state[name][is_better]


def _compute_condition(metric: Array, scale: Array) -> Array:
    """Divides the smallest eigenvalue of metric tensors by the largest, [m].

    Args:
        metric: Metric tensors, [m, D, D].
        scale: Steps of the factors, [D].
    """
    scaled = _scale(metric, scale)
    eigenvalues = np.linalg.eigvalsh(scaled)
    smallest = np.maximum(eigenvalues[:, 0], 0)
    tiny = np.finfo(float).tiny  # where the image does not move at all
    largest = np.maximum(eigenvalues[:, -1], tiny)
    return smallest / largest


def _trace(
    stages: StageFn,
    jacobian_fn: JacobianFn,
    images: Array,
    num_columns: int,
) -> StageFn:
    """Makes a function of points and numbers of images, [b, F + 1].

    Args:
        stages: From factors to the image.
        jacobian_fn: Its exact Jacobians.
        images: True images, [m, H, W, C].
        num_columns: Factors, and one.

    Returns:
        A function to the squared `error` [b], the products `slope` [b, D] of
        Jacobian and difference, and the `metric` [b, D, D].
    """
    flat_images = images.reshape(len(images), -1)
    targets = tf.constant(flat_images, tf.float32)

    def measure(batch: tf.Tensor) -> StageDict:
        """Compares the images of the model with the true ones."""
        factors = batch[:, :-1]
        numbers = tf.cast(batch[:, -1], tf.int32)
        truth = tf.gather(targets, numbers)
        outputs = stages(factors)[IMAGE]
        difference = truth - tf.reshape(outputs, tf.shape(truth))
        jacobian = jacobian_fn(stages, factors)[IMAGE]  # [b, pixels, D]
        return {
            "error": tf.reduce_sum(tf.square(difference), axis=1),
            "slope": tf.einsum("bpd,bp->bd", jacobian, difference),
            "metric": tf.einsum("bpd,bpe->bde", jacobian, jacobian),
        }

    # Fewer and fewer images: batches have any size.
    signature = [tf.TensorSpec((None, num_columns), tf.float32)]
    return tf.function(measure, signature, autograph=False)


def _measure(measure: StageFn, points: Array, numbers: Array) -> Arrays:
    """Calls a function of `_trace` at points [n, F] for numbered images [n]."""
    table = np.column_stack([points, numbers])
    return evaluate_in_batches(measure, table)


def _solve(state: Arrays, scale: Array) -> Array:
    """Solves the normal equations, in grid steps of at most one, [m, D]."""
    metric = _scale(state["metric"], scale)
    slope = state["slope"] * scale
    inverse = np.linalg.pinv(metric, rcond=DEAD, hermitian=True)
    steps = np.einsum("nde,ne->nd", inverse, slope)
    return steps.clip(-1, 1)


def _scale(metric: Array, scale: Array) -> Array:
    """Converts metric tensors [m, D, D] from units of factors to grid steps."""
    finite = np.nan_to_num(metric.astype(np.float64))
    return finite * scale * scale[:, None]


def _move(space: FactorSpace, points: Array, change: Array) -> Array:
    """Adds a change [m, D] of ordered factors to points, within the range."""
    points = points.copy()
    for number, column in enumerate(space.directions):
        factor = space.factors[column]
        values = points[:, column] + change[:, number]
        if factor.periodic:
            period = factor.high - factor.low
            offsets = np.mod(values - factor.low, period)
            values = factor.low + offsets
        else:
            grid = factor.values()
            values = values.clip(grid[0], grid[-1])
        points[:, column] = values
    return points


def count_steps(space: FactorSpace, points: Array, truth: Array) -> Array:
    """Counts grid steps between factors, also of values between the grid's.

    Args:
        space: The factors.
        points: Values of factors, [m, F].
        truth: True values, [m, F].

    Returns:
        Steps, [m, F]; infinite between different classes.
    """
    columns = []
    for factor, values, targets in zip(space, points.T, truth.T, strict=True):
        if factor.categorical:
            found = factor.to_index(values)
            asked = factor.to_index(targets)
            steps = np.where(found == asked, 0.0, np.inf)
        else:
            distances = _place(factor, values) - _place(factor, targets)
            steps = np.abs(distances)
        if factor.periodic:
            way_back = factor.cycle - steps
            steps = np.minimum(steps, way_back)
        columns.append(steps)
    return np.stack(columns, axis=1)


def _place(factor: Factor, values: Array) -> Array:
    """Finds the places of values along the grid of an ordered factor, [m]."""
    grid = factor.values().astype(np.float64)
    places = np.arange(factor.size)
    if factor.periodic:
        period = factor.high - factor.low
        grid = np.append(grid, grid[0] + period)
        places = np.append(places, factor.cycle)
    return np.interp(values, grid, places)


def _tabulate(
    dataset: Dataset,
    target: Target,
    source: str,
    steps: Array,
    condition: Array | None,
) -> list[Row]:
    """Lists errors by subset, level and factor.

    Args:
        dataset: Has the points.
        target: The images.
        source: Who found the factors.
        steps: Errors, [m, F].
        condition: Of the decoder at each image, [m], if it is one.
    """
    columns = dict(zip(dataset.space.names, steps.T, strict=True))
    columns["all"] = steps.max(axis=1)
    rows = []
    for subset, level, mask in list_levels(dataset):
        is_part = mask[target.rows]
        for factor, errors in columns.items():
            part = errors[is_part]
            is_found = part <= 0.5 + ROUNDING
            is_near = part <= 1 + ROUNDING
            row: Row = {
                "source": source,
                "subset": subset,
                "level": level,
                "factor": factor,
                "found": float(is_found.mean()),
                "near": float(is_near.mean()),
                "error": median_or_none(part),
                "condition": None,
            }
            if factor == "all" and condition is not None:
                row["condition"] = median_or_none(condition[is_part])
            rows.append(row)
    return rows
