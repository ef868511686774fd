"""Derivatives of a model, exact or by differences; interactions of factors."""

import functools
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics import jacobians
from tfcomp.metrics.interaction import Interaction, compute_jet_products
from tfcomp.models.stages import (
    JacobianFn,
    StageDict,
    StageFn,
    choose_batch_size,
    evaluate_in_batches,
    make_stage_model,
)

# Where exact derivatives are compared with differences.
NUM_CHECKED = 16
Interactions = dict[str, dict[str, float | None]]
# In reports and metrics, and in summaries during training.
MEASURED_POINTS, WATCHED_POINTS = 128, 64
# Numbers of derivatives at once, of all stages together.
MAX_NUMBERS = 2**26
# With fewer units, tracing takes longer than all that it saves in a run.
TRACED_UNITS = 2**15


def choose_jacobian(
    model: keras.Model, dataset: Dataset, steps: Sequence[str] | None = None
) -> JacobianFn:
    """Returns Jacobians, by differences in stages (`steps`) that need them."""
    exact, fallback = list_jacobians(model, dataset.space)
    if steps is None:
        steps = find_nondifferentiable(model, dataset)

    def combine(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
        differences = fallback(stage_fn, factors)
        kept = {s: differences[s] for s in differences if s in steps}
        return exact(stage_fn, factors) | kept

    return combine if steps else exact


def list_jacobians(
    model: keras.Model, space: FactorSpace
) -> tuple[JacobianFn, JacobianFn]:
    """Returns exact Jacobians and differences by *ordered* factor."""
    differences = functools.partial(
        jacobians.compute_difference_jacobians,
        values=[f.values() for f in space if not f.categorical],
    )
    fallback = _fix_classes(differences, space)
    layers = {layer.name: layer for layer in model.layers}
    if not getattr(layers.get("code"), "differentiable", True):
        return fallback, fallback
    own = _find_own(model)
    if own is None:
        return _fix_classes(jacobians.compute_stage_jacobians, space), fallback

    def choose_columns(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
        kept, every = list(space.ordered), own(stage_fn, factors)
        return {name: tf.gather(j, kept, axis=2) for name, j in every.items()}

    return choose_columns, fallback


def _find_own(model: keras.Model) -> JacobianFn | None:
    """Returns the Jacobians that a model of other software brings along."""
    found = [getattr(layer, "jacobian_fn", None) for layer in model.layers]
    return next((own for own in found if own is not None), None)


def find_nondifferentiable(model: keras.Model, dataset: Dataset) -> list[str]:
    """Finds stages that move with a factor although the derivative is 0."""
    space = dataset.space
    points = space.draw(NUM_CHECKED, np.random.default_rng(0))
    factors, stages = tf.constant(points, tf.float32), make_stage_model(model)
    exact, fallback = (
        functools.partial(
            jacobians.compute_stage_metrics, stages, jacobian_fn=jacobian_fn
        )
        for jacobian_fn in list_jacobians(model, space)
    )
    found, moved = exact(factors), fallback(factors)

    def select(tensors: StageDict) -> list[str]:
        return [
            s
            for s, g in tensors.items()
            if (is_flat(g) & ~is_flat(moved[s])).any()
        ]

    # Units of a narrow stage may be off at these few points alone.
    grid = dataset.splits.grid
    return select(found) and select(evaluate_in_batches(exact, grid))


def is_flat(g: np.ndarray | tf.Tensor) -> np.ndarray:
    """Returns which factors [F] metric tensors [n, F, F] are zero along."""
    lengths = np.diagonal(np.asarray(g), axis1=1, axis2=2)
    return np.asarray(~lengths.any(axis=0))


def describe_nondifferentiable(stages: Sequence[str]) -> str:
    """Returns a line that marks results of differences."""
    return (
        f"{', '.join(stages)}: not differentiable (exact derivatives are 0); "
        "the geometry there comes from differences over the grid"
    )


def _fix_classes(jacobian_fn: JacobianFn, space: FactorSpace) -> JacobianFn:
    """Returns Jacobians over ordered factors, with categorical ones fixed."""
    ordered = list(space.ordered)
    if not ordered:
        return lambda stage_fn, factors: {
            name: tf.zeros((tf.shape(h)[0], 1, 0))
            for name, h in stage_fn(factors).items()
        }
    if len(ordered) == len(space):
        return jacobian_fn

    def compute(stage_fn: StageFn, factors: tf.Tensor) -> StageDict:
        factors = tf.convert_to_tensor(factors)

        def vary(values: tf.Tensor) -> StageDict:
            columns = tf.unstack(factors, axis=1)
            for number, column in enumerate(ordered):
                columns[column] = values[:, number]
            return stage_fn(tf.stack(columns, axis=1))

        return jacobian_fn(vary, tf.gather(factors, ordered, axis=1))

    return compute


def make_interaction_fn(
    model: keras.Model, space: FactorSpace, num_units: int
) -> Callable[[np.ndarray], Interactions]:
    """Returns a function from points [n, F] to the interactions of stages."""
    exact, fallback = list_jacobians(model, space)
    ranges = [f.high - f.low for f in space if not f.categorical]
    if len(ranges) < 2 or exact is fallback or _find_own(model):
        return lambda points: {}
    stages = make_stage_model(model)
    is_traced = num_units > TRACED_UNITS
    columns = len(ranges) * (len(ranges) + 5) // 2
    most = max(1, MAX_NUMBERS // (num_units * columns))
    compute: Callable[[tf.Tensor], StageDict] = functools.partial(
        compute_jet_products, stages, jacobian_fn=exact
    )
    if is_traced:
        compute = tf.function(compute, autograph=False)

    def measure(points: np.ndarray) -> Interactions:
        whole = choose_batch_size(num_units, len(points))
        try:
            products = evaluate_in_batches(
                compute, points, min(most, whole), is_traced
            )
        except LookupError:  # an operation without a further gradient
            return {}
        return {
            s: Interaction(p, ranges).summarize() for s, p in products.items()
        }

    return measure


def choose_points(grid: np.ndarray, count: int) -> np.ndarray:
    """Returns a fixed random sample of the rows of a grid, in its order."""
    rows = np.random.default_rng(0).permutation(len(grid))[:count]
    return grid[np.sort(rows)]
