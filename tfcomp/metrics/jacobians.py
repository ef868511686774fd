"""Jacobians and metric tensors of every stage of a decoder, in one pass.

For a stage h, mapping factors f to activations (flattened), the Jacobian is
J = dh/df [units, factors] and the metric that the stage pulls back to the
factors is g = J^T J (paper section 3.4, appendix B), per unit of the factor.

A `stage_fn` maps a float tensor of factors [n, F] to a dictionary
`{stage name: tensor [n, ...]}`, as a Keras model with named outputs does.
Row i of every output may depend on row i of the factors only.
"""

from collections.abc import Sequence

import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.models.stages import JacobianFn, StageDict, StageFn


def compute_stage_jacobians(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
    """Returns exact Jacobians [n, units, F] of all stages, in their order.

    One pass per factor, where `tape.batch_jacobian` takes one per unit.
    """
    # The inner gradient of sum <u, h> over stages is linear in the cotangents
    # u, so its own gradient with respect to u is a column of the Jacobian.
    factors = tf.convert_to_tensor(factors)
    zero = {"unconnected_gradients": tf.UnconnectedGradients.ZERO}
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            inner.watch(factors)
            stages = stage_fn(factors)
        cotangents = {name: tf.zeros_like(h) for name, h in stages.items()}
        outer.watch(cotangents)
        given = list(cotangents.values())
        pulled = inner.gradient(
            list(stages.values()), factors, output_gradients=given, **zero
        )  # [n, F]
        # A gradient sums over rows, of which each depends on its own alone.
        pulled_columns = tf.unstack(pulled, axis=1)
    columns = [outer.gradient(c, cotangents, **zero) for c in pulled_columns]
    return _stack_columns(columns)


def compute_difference_jacobians(
    stage_fn: StageFn, factors: tf.Tensor, values: Sequence[Array]
) -> StageDict:
    """Returns Jacobians [n, units, F] of stages that are steps, as one-hot.

    Differences are between the neighbors of the nearest of the `values` of each
    factor, one-sided at the border; zeros for a factor with one value.
    """
    factors = tf.convert_to_tensor(factors)
    columns = []
    for i, known in enumerate(values):
        levels, value = tf.constant(known, factors.dtype), factors[:, i]
        nearest = tf.argmin(tf.abs(value[:, None] - levels), axis=1)
        low = tf.gather(levels, tf.maximum(nearest - 1, 0))
        high = tf.gather(levels, tf.minimum(nearest + 1, len(known) - 1))
        before = tf.maximum(value - low, 0.0)[:, None]  # [n, 1]
        after = tf.maximum(high - value, 0.0)[:, None]
        shift = tf.one_hot(i, len(values), dtype=factors.dtype)  # [F]
        above = stage_fn(factors + after * shift)
        below = stage_fn(factors - before * shift)
        column = {}
        for name in above:
            flat = _flatten(above[name] - below[name])  # [n, units]
            width = tf.cast(after + before, flat.dtype)
            column[name] = tf.math.divide_no_nan(flat, width)
        columns.append(column)
    return _stack_columns(columns)


def compute_stage_metrics(
    stage_fn: StageFn,
    factors: tf.Tensor,
    jacobian_fn: JacobianFn = compute_stage_jacobians,
) -> StageDict:
    """Returns metric tensors g = J^T J [n, F, F] of all stages, float64."""
    jacobians = jacobian_fn(stage_fn, factors)
    return {name: _compute_metric(j) for name, j in jacobians.items()}


def _compute_metric(jacobian: tf.Tensor) -> tf.Tensor:
    if not jacobian.shape[-1]:  # no factor that has derivatives
        return tf.zeros((tf.shape(jacobian)[0], 0, 0), tf.float64)
    # In float64: a ratio of 1e-4 between directions, which a float32 Jacobian
    # resolves well, is one of 1e-8 between eigenvalues of g.
    # Sliced as [:, :, i], which the graph optimizer cancels against the stack
    # that made the Jacobian ([..., i] and unstack cost a third more).
    count = jacobian.shape[-1]
    columns = [tf.cast(jacobian[:, :, i], tf.float64) for i in range(count)]
    g = [[tf.reduce_sum(x * y, axis=1) for y in columns] for x in columns]
    return tf.stack([tf.stack(row, axis=1) for row in g], axis=1)  # [n, F, F]


def _stack_columns(columns: list[StageDict]) -> StageDict:
    return {
        name: tf.stack([_flatten(c[name]) for c in columns], axis=-1)
        for name in columns[0]
    }


def _flatten(values: tf.Tensor) -> tf.Tensor:
    units = values.shape[1:].num_elements()
    # Named where it is known, so that the Jacobian's shape stays static.
    if units is None:  # not -1, which an empty batch leaves open
        units = tf.reduce_prod(tf.shape(values)[1:])
    return tf.reshape(values, [tf.shape(values)[0], units])
