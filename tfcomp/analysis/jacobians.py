"""Jacobians and metric tensors of every stage of a decoder, in one pass.

For a stage h, mapping factors f to activations (flattened), the Jacobian is
J = dh/df [units, factors] and the metric that the stage pulls back to the
factors is g = J^T J (paper section 3.4, appendix B). J is per unit of the
factor; nothing is divided by the number of units or of pixels.

A `stage_fn` maps a float tensor of factors [n, F] to a dictionary
`{stage name: tensor [n, ...]}`, as a Keras model with named outputs does.
Row i of every output may depend on row i of the factors only.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

StageDict = dict[str, tf.Tensor]
StageFn = Callable[[tf.Tensor], StageDict]
JacobianFn = Callable[[StageFn, tf.Tensor], StageDict]

# One row of a 28 x 28 grid; larger batches are no faster, and take more memory.
BATCH_SIZE = 28


def compute_stage_jacobians(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
    """Returns exact Jacobians [n, units, F] of all stages, in their order.

    A stage that does not depend on the factors has zeros. It takes one pass per
    factor, where `tape.batch_jacobian` needs one per unit, and another one
    unless in a `tf.function` with a static batch size.
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
    stage_fn: StageFn,
    factors: tf.Tensor,
    low: Sequence[float],
    high: Sequence[float],
    step: float | Sequence[float] = 1.0,
    levels: Sequence[Sequence[float]] = (),
) -> StageDict:
    """Returns Jacobians [n, units, F] by differences over the grid.

    They are for stages that are steps, as a one-hot code. Differences are
    central, and one-sided where a neighbor would leave the range, from `low` to
    `high` of each factor; zeros in a column where a point has no neighbor.
    Values are one `step` apart (for all factors or one each), or are given by
    `levels` where these are not empty.
    """
    factors = tf.convert_to_tensor(factors)
    steps = np.broadcast_to(step, len(low)).tolist()
    columns = []
    ranges = zip(low, high, steps, strict=True)
    for i, (lowest, highest, size) in enumerate(ranges):
        value = factors[:, i]  # [n]
        if levels and len(levels[i]):
            before, after = _find_neighbors(value, levels[i])
        else:
            # Tolerant, as 0.9 + 0.1 exceeds 1.0 in float32.
            slack = 1e-3 * size
            after = tf.where(value + size <= highest + slack, size, 0.0)
            before = tf.where(value - size >= lowest - slack, size, 0.0)
        shift = tf.one_hot(i, len(low), dtype=factors.dtype)  # [F]
        after = tf.cast(after, factors.dtype)[:, None]  # [n, 1]
        before = tf.cast(before, factors.dtype)[:, None]  # [n, 1]
        above = stage_fn(factors + after * shift)
        below = stage_fn(factors - before * shift)
        column = {}
        for name in above:
            flat = _flatten(above[name] - below[name])  # [n, units]
            width = tf.cast(after + before, flat.dtype)
            column[name] = tf.math.divide_no_nan(flat, width)
        columns.append(column)
    return _stack_columns(columns)


def _find_neighbors(
    value: tf.Tensor, levels: Sequence[float]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns distances [n] to the values below and above; 0 without one."""
    values = tf.constant(levels, value.dtype)
    nearest = tf.argmin(tf.abs(value[:, None] - values), axis=1)
    below = tf.gather(values, tf.maximum(nearest - 1, 0))
    above = tf.gather(values, tf.minimum(nearest + 1, len(levels) - 1))
    return tf.maximum(value - below, 0.0), tf.maximum(above - value, 0.0)


def compute_stage_metrics(
    stage_fn: StageFn,
    factors: tf.Tensor,
    jacobian_fn: JacobianFn = compute_stage_jacobians,
) -> StageDict:
    """Returns metric tensors g = J^T J [n, F, F] of all stages, float64."""
    jacobians = jacobian_fn(stage_fn, factors)
    return {name: _compute_metric(j) for name, j in jacobians.items()}


def evaluate_in_batches(
    fn: Callable[[tf.Tensor], StageDict],
    factors: np.ndarray,
    batch_size: int = BATCH_SIZE,
    traced: bool = True,
) -> dict[str, np.ndarray]:
    """Evaluates a function of factors [n, F] over a whole grid, batch by batch.

    It maps [b, F] to {name: tensor [b, ...]}, row by row, in float32. All
    batches have one size, up to `batch_size`, the last one padded by repeating
    its last row, so there is one trace. Pass a `tf.function` to keep that
    between calls.
    """
    num_batches = -(-len(factors) // batch_size)
    size = -(-len(factors) // num_batches)
    padding = [(0, num_batches * size - len(factors)), (0, 0)]
    padded = np.pad(np.asarray(factors, np.float32), padding, mode="edge")
    kind = tf.types.experimental.PolymorphicFunction
    fn = tf.function(fn) if traced and not isinstance(fn, kind) else fn
    # Filled batch by batch: joined at the end, they would take twice as much.
    results: dict[str, np.ndarray] = {}
    for start in range(0, len(padded), size):
        rows = tf.constant(padded[start : start + size])
        for name, value in fn(rows).items():
            batch = value.numpy()
            if name not in results:
                shape = (len(padded), *batch.shape[1:])
                results[name] = np.empty(shape, batch.dtype)
            results[name][start : start + size] = batch
    return {name: values[: len(factors)] for name, values in results.items()}


def _compute_metric(jacobian: tf.Tensor) -> tf.Tensor:
    if not jacobian.shape[-1]:  # no factor that has derivatives
        return tf.zeros((tf.shape(jacobian)[0], 0, 0), tf.float64)
    # In float64: a ratio of 1e-4 between directions, which a float32 Jacobian
    # resolves well, is one of 1e-8 between eigenvalues of g.
    # Sliced as [:, :, i], a form that the graph optimizer cancels against
    # the stack that made the Jacobian ([..., i] and unstack are not, and
    # cost a third more). Dots per pair are faster than one thin product.
    rows = [
        tf.cast(jacobian[:, :, i], tf.float64)[:, None, :]  # [n, 1, units]
        for i in range(jacobian.shape[-1])
    ]
    dots = {
        (i, j): tf.matmul(rows[i], rows[j], transpose_b=True)  # [n, 1, 1]
        for i in range(len(rows))
        for j in range(i, len(rows))
    }
    # Each pair once and mirrored, so that g is symmetric to the last bit.
    places = range(len(rows))
    mirrored = [[dots[min(i, j), max(i, j)] for j in places] for i in places]
    lines = [tf.concat(line, axis=2) for line in mirrored]
    return tf.concat(lines, axis=1)  # [n, F, F]


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
