"""Derivatives of a model, exact or by differences; and how factors interact."""

import functools
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import jacobians
from tfcomp.analysis.interaction import Interaction, compute_jet_products
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.stages import make_stage_model

# Where exact derivatives are compared with differences.
NUM_CHECKED = 16
Interactions = dict[str, dict[str, float | None]]
# Of reports and measures, and of summaries during training.
MEASURED_POINTS, WATCHED_POINTS = 128, 64
# Numbers of derivatives at once, of all stages together.
MAX_NUMBERS = 2**26
# With fewer units, tracing takes longer than all that it saves in a run.
TRACED_UNITS = 2**15


def choose_jacobian(
    model: keras.Model, space: FactorSpace, steps: Sequence[str] | None = None
) -> Callable:
    """Returns Jacobians of a model, by differences in stages that need them.

    These are `steps`, by default what `find_nondifferentiable` finds.
    """
    usual, fallback = list_jacobians(model, space)
    if steps is None:
        steps = find_nondifferentiable(model, space)

    def combine(stage_fn: Callable, factors: tf.Tensor) -> dict:
        found = fallback(stage_fn, factors)
        shown = {name: found[name] for name in found if name in steps}
        return usual(stage_fn, factors) | shown

    return combine if steps else usual


def list_jacobians(
    model: keras.Model, space: FactorSpace
) -> tuple[Callable, Callable]:
    """Exact Jacobians, and what replaces them where they are all zero, as of a
    one-hot code and of steps: central differences over the grid (one-sided at
    its border), on the same scale. They have a column for each *ordered*
    factor."""
    ordered = [space.factors[column] for column in space.ordered]
    differences = functools.partial(
        jacobians.compute_difference_jacobians,
        low=[factor.low for factor in ordered],
        high=[factor.values()[-1] for factor in ordered],
        step=[factor.step for factor in ordered],
        levels=[factor.levels for factor in ordered],
    )
    differences = _keep_names_fixed(differences, space)
    layers = {layer.name: layer for layer in model.layers}
    if not getattr(layers.get("code"), "differentiable", True):
        return differences, differences
    exact = _keep_names_fixed(jacobians.compute_stage_jacobians, space)
    return exact, differences


def find_nondifferentiable(model: keras.Model, space: FactorSpace) -> list[str]:
    """Stages that move with a factor although their derivative is exactly zero
    at a few points: behind a rounding, a stopped gradient, other software."""
    points = space.draw(NUM_CHECKED, np.random.default_rng(0))
    factors, stages = tf.constant(points, tf.float32), make_stage_model(model)
    usual, fallback = list_jacobians(model, space)
    exact = jacobians.compute_stage_metrics(stages, factors, usual)
    flat = {stage: is_flat(g) for stage, g in exact.items()}
    if not any(column.any() for column in flat.values()):
        return []
    found = jacobians.compute_stage_metrics(stages, factors, fallback)
    return [s for s in flat if (flat[s] & ~is_flat(found[s])).any()]


def is_flat(g: np.ndarray | tf.Tensor) -> np.ndarray:
    """Factors [F] along which metric tensors [n, F, F] are zero everywhere."""
    return ~np.diagonal(np.asarray(g), axis1=1, axis2=2).any(axis=0)


def describe_nondifferentiable(stages: Sequence[str]) -> str:
    """One line that marks results of differences."""
    return (
        f"{', '.join(stages)}: not differentiable (exact derivatives are 0); "
        "the geometry there comes from differences over the grid"
    )


def _keep_names_fixed(jacobian_fn: Callable, space: FactorSpace) -> Callable:
    """Jacobians over the ordered factors, the categorical ones fixed."""
    ordered = list(space.ordered)
    if not ordered:
        return lambda stage_fn, factors: {
            name: tf.zeros((tf.shape(h)[0], 1, 0))
            for name, h in stage_fn(factors).items()
        }
    if len(ordered) == len(space):
        return jacobian_fn

    def compute(stage_fn: Callable, factors: tf.Tensor) -> dict:
        factors = tf.convert_to_tensor(factors)

        def vary(values: tf.Tensor) -> dict:
            columns = tf.unstack(factors, axis=1)
            for number, column in enumerate(ordered):
                columns[column] = values[:, number]
            return stage_fn(tf.stack(columns, axis=1))

        return jacobian_fn(vary, tf.gather(factors, ordered, axis=1))

    return compute


def make_interaction_fn(
    model: keras.Model,
    space: FactorSpace,
    num_units: int,
    is_traced: bool = False,
) -> Callable[[np.ndarray], Interactions]:
    """From points [n, F] to the numbers of every stage, by exact derivatives;
    to nothing for a one-hot code, operations that cannot be differentiated as
    often, or fewer than two ordered factors. Many units are traced anyway."""
    exact, fallback = list_jacobians(model, space)
    ordered = [space.factors[column] for column in space.ordered]
    ranges = [factor.high - factor.low for factor in ordered]
    if len(ranges) < 2 or exact is fallback:
        return lambda points: {}
    stages = make_stage_model(model)
    is_traced = is_traced or num_units > TRACED_UNITS
    columns = len(ranges) * (len(ranges) + 5) // 2
    size = max(1, MAX_NUMBERS // (num_units * columns))
    size = min(size, jacobians.BATCH_SIZE) if is_traced else size

    def compute(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        return compute_jet_products(stages, factors, exact)

    if is_traced:
        compute = tf.function(compute, autograph=False)

    def measure(points: np.ndarray) -> Interactions:
        try:
            found = jacobians.evaluate_in_batches(
                compute, points, size, is_traced
            )
        except LookupError:  # an operation without a further gradient
            return {}
        return {s: Interaction(p, ranges).summarize() for s, p in found.items()}

    return measure


def choose_points(grid: np.ndarray, count: int) -> np.ndarray:
    """At most so many rows of a grid, always the same ones, in its order."""
    rows = np.random.default_rng(0).permutation(len(grid))[:count]
    return grid[np.sort(rows)]
