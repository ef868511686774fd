"""Jacobians and metric tensors of every stage of a decoder, in one pass.

They are exact, or differences over the grid where a stage is not
differentiable, as behind a one-hot code.

For a stage h, mapping factors f to activations (flattened), the Jacobian is
J = dh/df [units, factors] and the metric that the stage pulls back to the
factors is g = J^T J (paper section 3.4, appendix B), per unit of the factor.

A `stage_fn` maps a float tensor of factors [n, F] to a dictionary
`{stage name: tensor [n, ...]}`, as a Keras model with named outputs does.
Row i of every output may depend on row i of the factors only.
"""

import functools
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.registry import (
    JacobianFn,
    StageDict,
    StageFn,
    evaluate_in_batches,
    make_stage_model,
)

# Points at which exact derivatives are compared with differences.
NUM_CHECKED = 16


def compute_stage_jacobians(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
    """Computes exact Jacobians of all stages.

    One pass per factor, where `tape.batch_jacobian` takes one per unit.

    Args:
        stage_fn: From factors to stages.
        factors: Points, [n, F].

    Returns:
        Jacobians [n, units, F] by stage, in the order of the stages.
    """
    # The inner gradient of sum <u, h> over stages is linear in the cotangents
    # u, so its own gradient with respect to u is a column of the Jacobian.
    # Derivatives by weights, which tapes watch by default, are not needed.
    factors = tf.convert_to_tensor(factors)
    zero = tf.UnconnectedGradients.ZERO
    with tf.GradientTape(
        persistent=True,
        watch_accessed_variables=False,
    ) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(factors)
            stages = stage_fn(factors)
        cotangents = {}
        for name, activations in stages.items():
            cotangents[name] = tf.zeros_like(activations)
        outer.watch(cotangents)
        pulled = inner.gradient(
            list(stages.values()),
            factors,
            output_gradients=list(cotangents.values()),
            unconnected_gradients=zero,
        )  # [n, F]
        # A gradient sums over rows, and a row depends on its own point alone.
        pulled_columns = tf.unstack(pulled, axis=1)

    columns = []
    for pulled_column in pulled_columns:
        column = outer.gradient(
            pulled_column,
            cotangents,
            unconnected_gradients=zero,
        )
        columns.append(column)
    return _stack_columns(columns)


def compute_difference_jacobians(
    stage_fn: StageFn,
    factors: tf.Tensor,
    values: Sequence[Array],
) -> StageDict:
    """Computes Jacobians of stages that are steps, as of a one-hot code.

    Differences are between the neighbors of the nearest value of each factor,
    one-sided at the border; zeros for a factor with one value.

    Args:
        stage_fn: From factors to stages.
        factors: Points, [n, F].
        values: The values of each factor, in order.

    Returns:
        Jacobians [n, units, F] by stage.
    """
    factors = tf.convert_to_tensor(factors)
    dtype = factors.dtype
    columns = []
    for i, factor_values in enumerate(values):
        levels = tf.constant(factor_values, dtype)
        before, after = _find_distances(factors[:, i], levels)
        shift = tf.one_hot(i, len(values), dtype=dtype)  # [F]
        above = stage_fn(factors + after * shift)
        below = stage_fn(factors - before * shift)

        total = after + before
        column = {}
        for name in above:
            difference = _flatten(above[name] - below[name])  # [n, units]
            width = tf.cast(total, difference.dtype)
            column[name] = tf.math.divide_no_nan(difference, width)
        columns.append(column)
    return _stack_columns(columns)


def _find_distances(
    value: tf.Tensor,
    levels: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes distances to the neighbors of the nearest level.

    Args:
        value: Values of a factor, [n].
        levels: Its values on the grid, in order.

    Returns:
        Distances to the level before and to the level after, [n, 1] each.
    """
    distance = tf.abs(value[:, None] - levels)
    nearest = tf.argmin(distance, axis=1)
    last = levels.shape[0] - 1
    low = tf.gather(levels, tf.maximum(nearest - 1, 0))
    high = tf.gather(levels, tf.minimum(nearest + 1, last))

    before = tf.maximum(value - low, 0.0)
    after = tf.maximum(high - value, 0.0)
    return before[:, None], after[:, None]


def compute_stage_metrics(
    stage_fn: StageFn,
    factors: tf.Tensor,
    jacobian_fn: JacobianFn = compute_stage_jacobians,
) -> StageDict:
    """Computes metric tensors g = J^T J of all stages, float64.

    Args:
        stage_fn: From factors to stages.
        factors: Points, [n, F].
        jacobian_fn: Computes the Jacobians.

    Returns:
        Metric tensors [n, F, F] by stage.
    """
    metrics = {}
    for stage, jacobian in jacobian_fn(stage_fn, factors).items():
        metrics[stage] = _compute_metric(jacobian)
    return metrics


def _compute_metric(jacobian: tf.Tensor) -> tf.Tensor:
    """Computes g = J^T J [n, F, F] of one stage, [n, units, F]."""
    count = jacobian.shape[-1]
    if not count:  # no factor that has derivatives
        num_points = tf.shape(jacobian)[0]
        return tf.zeros((num_points, 0, 0), tf.float64)

    # In float64: a ratio of 1e-4 between directions, which a float32 Jacobian
    # resolves well, is one of 1e-8 between eigenvalues of g.
    # Sliced as [:, :, i], which the graph optimizer cancels against the stack
    # that made the Jacobian ([..., i] and unstack cost a third more).
    columns = [tf.cast(jacobian[:, :, i], tf.float64) for i in range(count)]
    rows = []
    for first in columns:
        products = [tf.reduce_sum(first * second, axis=1) for second in columns]
        rows.append(tf.stack(products, axis=1))
    return tf.stack(rows, axis=1)  # [n, F, F]


def _stack_columns(columns: list[StageDict]) -> StageDict:
    """Makes Jacobians [n, units, F] of F columns, which have any shape."""
    jacobians = {}
    for stage in columns[0]:
        flat = [_flatten(column[stage]) for column in columns]
        jacobians[stage] = tf.stack(flat, axis=-1)
    return jacobians


def _flatten(values: tf.Tensor) -> tf.Tensor:
    """Reshapes activations [n, ...] to [n, units]."""
    units = values.shape[1:].num_elements()
    # Named where it is known, so that the Jacobian's shape stays static.
    if units:
        return tf.reshape(values, [-1, units])
    if units is None:  # not -1, which an empty batch leaves open
        units = tf.reduce_prod(tf.shape(values)[1:])
    return tf.reshape(values, [tf.shape(values)[0], units])


def choose_jacobian(
    model: keras.Model,
    dataset: Dataset,
    steps: Sequence[str] | None = None,
) -> JacobianFn:
    """Chooses Jacobians: exact ones, or differences in stages that need them.

    Args:
        model: From factors to images.
        dataset: Has the factors and the grid.
        steps: Stages that are steps; by default they are found.
    """
    exact, fallback = list_jacobians(model, dataset.space)
    if steps is None:
        steps = find_nondifferentiable(model, dataset)
    if not steps:
        return exact

    def combine(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
        """Takes differences for stages that are steps."""
        differences = fallback(stage_fn, factors)
        jacobians = exact(stage_fn, factors)
        for stage in differences:
            if stage in steps:
                jacobians[stage] = differences[stage]
        return jacobians

    return combine


def list_jacobians(
    model: keras.Model,
    space: FactorSpace,
) -> tuple[JacobianFn, JacobianFn]:
    """Makes two functions: exact Jacobians, and differences.

    Their columns are the *ordered* factors.

    Args:
        model: From factors to images.
        space: The factors.
    """
    values = [f.values() for f in space if not f.categorical]
    differences = functools.partial(
        compute_difference_jacobians,
        values=values,
    )
    fallback = _fix_classes(differences, space)
    layers = {layer.name: layer for layer in model.layers}
    code = layers.get("code")
    if not getattr(code, "differentiable", True):
        return fallback, fallback

    outside = find_outside_jacobians(model)
    if outside is None:
        exact = _fix_classes(compute_stage_jacobians, space)
        return exact, fallback
    ordered = list(space.directions)

    def choose_columns(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
        """Keeps the columns of ordered factors."""
        jacobians = {}
        for stage, jacobian in outside(stage_fn, factors).items():
            jacobians[stage] = tf.gather(jacobian, ordered, axis=2)
        return jacobians

    return choose_columns, fallback


def find_outside_jacobians(model: keras.Model) -> JacobianFn | None:
    """Finds the Jacobians that a model of other software brings along."""
    for layer in model.layers:
        jacobian_fn = getattr(layer, "jacobian_fn", None)
        if jacobian_fn is not None:
            return jacobian_fn
    return None


def find_nondifferentiable(
    model: keras.Model,
    dataset: Dataset,
    on_grid: dict[str, Array] | None = None,
) -> list[str]:
    """Finds stages that move with a factor although the derivative is 0.

    Args:
        model: From factors to images.
        dataset: Has the factors and the grid.
        on_grid: Metric tensors of all stages by derivatives, [n, F, F], at
            all points of the grid; by default they are computed.
    """
    space = dataset.space
    stages = make_stage_model(model)
    exact_fn, difference_fn = list_jacobians(model, space)
    exact = functools.partial(
        compute_stage_metrics,
        stages,
        jacobian_fn=exact_fn,
    )
    differences = functools.partial(
        compute_stage_metrics,
        stages,
        jacobian_fn=difference_fn,
    )
    rng = np.random.default_rng(0)
    points = space.draw(NUM_CHECKED, rng)
    factors = tf.constant(points, tf.float32)
    moved = differences(factors)
    suspects = _list_steps(exact(factors), moved)
    if not suspects:
        return []

    # Units of a narrow stage may be off at these few points alone.
    if on_grid is None:
        on_grid = evaluate_in_batches(exact, dataset.splits.grid)
    return _list_steps(on_grid, moved)


def _list_steps(exact: StageDict, moved: StageDict) -> list[str]:
    """Lists stages whose exact metrics alone are zero along a factor."""
    stages = []
    for stage, g in exact.items():
        is_step = is_flat(g) & ~is_flat(moved[stage])
        if is_step.any():
            stages.append(stage)
    return stages


def is_flat(g: Array | tf.Tensor) -> Array:
    """Marks the factors [F] along which metric tensors [n, F, F] are zero."""
    lengths = np.diagonal(
        np.asarray(g),
        axis1=1,
        axis2=2,
    )  # [n, F]
    return np.asarray(~lengths.any(axis=0))


def describe_nondifferentiable(stages: Sequence[str]) -> str:
    """Formats a line that marks results of differences."""
    return (
        f"{', '.join(stages)}: not differentiable (exact derivatives are 0); "
        "the geometry there comes from differences over the grid"
    )


def _fix_classes(jacobian_fn: JacobianFn, space: FactorSpace) -> JacobianFn:
    """Makes Jacobians over ordered factors, with categorical ones fixed."""
    ordered = list(space.directions)
    if not ordered:
        return _make_empty_jacobians
    if len(ordered) == len(space):
        return jacobian_fn

    def compute(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
        """Differentiates by ordered factors, at the given classes."""
        factors = tf.convert_to_tensor(factors)

        def vary(values: tf.Tensor) -> StageDict:
            columns = tf.unstack(factors, axis=1)
            for number, column in enumerate(ordered):
                columns[column] = values[:, number]
            return stage_fn(tf.stack(columns, axis=1))

        varied = tf.gather(factors, ordered, axis=1)
        return jacobian_fn(vary, varied)

    return compute


def _make_empty_jacobians(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
    """Makes Jacobians [n, 1, 0] of categorical factors alone."""
    jacobians = {}
    for stage, activations in stage_fn(factors).items():
        count = tf.shape(activations)[0]
        jacobians[stage] = tf.zeros((count, 1, 0))
    return jacobians
