"""How the factors interact in every stage of one model, over and over."""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import evaluate_in_batches
from tfcomp.analysis.interaction import Interaction, compute_jet_products
from tfcomp.datasets.factors import FactorSpace
from tfcomp.evaluation.derivatives import list_jacobians
from tfcomp.models.stages import make_stage_model

Interactions = dict[str, dict[str, float | None]]
# Of reports and measures, and of summaries during training.
MEASURED_POINTS, WATCHED_POINTS = 128, 64
# Numbers of derivatives at once, of all stages together.
MAX_NUMBERS = 2**26
# With fewer units, tracing takes longer than all that it saves in a run.
TRACED_UNITS = 2**16


def make_interaction_fn(
    model: keras.Model,
    space: FactorSpace,
    num_units: int,
    is_traced: bool = False,
) -> Callable[[np.ndarray], Interactions]:
    """From points [n, F] to the numbers of every stage, by exact derivatives.

    To nothing for a code without derivatives, as a one-hot code, operations
    that cannot be differentiated as often, or fewer than two ordered factors.
    Models with many units are traced in any case.
    """
    ordered = [space.factors[column] for column in space.ordered]
    exact, fallback = list_jacobians(model, space)
    if len(ordered) < 2 or exact is fallback:
        return lambda points: {}
    stages = make_stage_model(model)
    is_traced = is_traced or num_units > TRACED_UNITS
    ranges = [factor.high - factor.low for factor in ordered]
    columns = len(ranges) * (len(ranges) + 5) // 2
    size = max(1, MAX_NUMBERS // (num_units * columns))

    def compute(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        return compute_jet_products(stages, factors, exact)

    compute = tf.function(compute) if is_traced else compute

    def measure(points: np.ndarray) -> Interactions:
        try:
            found = evaluate_in_batches(compute, points, size, is_traced)
        except LookupError:  # an operation without a further gradient
            return {}
        return {s: Interaction(p, ranges).summarize() for s, p in found.items()}

    return measure


def choose_points(grid: np.ndarray, count: int) -> np.ndarray:
    """At most so many rows of a grid, always the same ones, in its order."""
    rows = np.random.default_rng(0).permutation(len(grid))[:count]
    return grid[np.sort(rows)]
