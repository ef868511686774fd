"""Interactions of factors in a stage: derivatives, contrast, curvature.

For a stage h of factors z, with h_i = dh/dz_i and h_ij = d2h/dz_i dz_j, all
inner products over its units:

    mixed share         sum_{i<j} |h_ij|^2 / S                       in [0, 1]
                        S = sum_i |h_i|^2 + sum_{i<=j} |h_ij|^2
    contrast            sum_{i<j} <|h_i|, |h_j|>
    relative contrast   contrast / sum_{i<j} |h_i| |h_j|             in [0, 1]
    curvature           K = (<II_11, II_22> - |II_12|^2) / det g

The sums of the mixed share (interaction asymmetry, Brady et al. 2025) are also
over points. Contrast: Brady et al. 2023. K is the Gaussian curvature of the
surface of two factors (Gauss): g_ij = <h_i, h_j> is its metric, II_ij what h_ij
has at right angles to h_1 and h_2.
"""

import functools
import itertools
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics import jacobians
from tfcomp.metrics.geometry import is_dead, set_nan
from tfcomp.metrics.registry import (
    Scores,
    make_scores,
    mean_or_none,
    median_or_none,
)
from tfcomp.models.registry import (
    StageDict,
    choose_batch_size,
    evaluate_in_batches,
    make_stage_model,
)

Interactions = dict[str, Scores]  # by stage
InteractionFn = Callable[[Array], Interactions]  # from points [n, F]
# In reports and metrics, and in summaries during training.
MEASURED_POINTS = 128
WATCHED_POINTS = 64
# Numbers of derivatives at once, of all stages together.
MAX_NUMBERS = 2**26
# Second derivatives over first ones up to which a stage is linear.
FLOOR = 1e-6
# Least squared sine between directions that span a surface, in float32.
MIN_SQUARED_SINE = 1e-6


def list_pairs(num_factors: int) -> list[tuple[int, int]]:
    """Lists pairs i <= j of factors: (0, 0), (0, 1), ..., (1, 1), ..."""
    factors = range(num_factors)
    pairs = itertools.combinations_with_replacement(factors, 2)
    return list(pairs)


def compute_jet_products(
    stage_fn: jacobians.StageFn,
    factors: tf.Tensor,
    jacobian_fn: jacobians.JacobianFn = jacobians.compute_stage_jacobians,
) -> StageDict:
    """Computes inner products of all derivatives of stages, float64.

    Args:
        stage_fn: From factors to stages.
        factors: Points, [n, F].
        jacobian_fn: Computes exact Jacobians.

    Returns:
        Products [n, K, K] by stage, where K counts F first derivatives,
        F (F + 1) / 2 second ones (pairs as in `list_pairs`) and F absolute
        first ones.
    """
    columns: dict[str, list[tf.Tensor]] = {}

    # Each column by itself: columns of pairs i > j are then never computed.
    def differentiate(values: tf.Tensor) -> StageDict:
        """Lists first derivatives, a stage for each column."""
        slopes = {}
        jacobians_by_stage = jacobian_fn(stage_fn, values)
        for stage, jacobian in jacobians_by_stage.items():
            columns[stage] = []
            num_columns = jacobian.shape[-1]
            for i in range(num_columns):
                column = jacobian[:, :, i]
                columns[stage].append(column)
                slopes[f"{stage}/{i}"] = column
        return slopes

    second = jacobian_fn(differentiate, factors)
    products = {}
    for stage, slopes in columns.items():
        bends = []
        pairs = list_pairs(len(slopes))
        for i, j in pairs:
            jacobian = second[f"{stage}/{i}"]  # of the derivative by i
            bend = jacobian[:, :, j]
            bends.append(bend)
        absolute = [tf.abs(slope) for slope in slopes]
        columns_of_jet = [*slopes, *bends, *absolute]
        jet = tf.stack(columns_of_jet, axis=1)
        jet = tf.cast(jet, tf.float64)  # [n, K, units]
        products[stage] = tf.matmul(jet, jet, transpose_b=True)
    return products


class Interaction:
    """Numbers of a stage at n points; derivatives per range of a factor."""

    def __init__(self, products: Array, ranges: Sequence[float]) -> None:
        """Takes the products of a stage apart.

        Args:
            products: By `compute_jet_products`, [n, K, K].
            ranges: Range of each factor.
        """
        count = len(ranges)
        scale = np.asarray(ranges, float)
        pair_scale = [scale[i] * scale[j] for i, j in list_pairs(count)]
        scales = np.concatenate([scale, pair_scale, scale])  # [K]

        products = set_nan(products)
        column_scales = scales[:, None]
        products = products * column_scales * scales

        first = slice(count)
        last = slice(-count, None)
        second = slice(count, -count)
        self.count = count
        self.first = products[:, first, first]
        self.cross = products[:, first, second]
        self.second = products[:, second, second]
        self.absolute = products[:, last, last]

    def mixed_share(self) -> float:
        """Computes the mixed share; NaN for a stage that does not move."""
        squares = np.diagonal(
            self.second,
            axis1=1,
            axis2=2,
        )  # [n, pairs]
        traces = np.trace(
            self.first,
            axis1=1,
            axis2=2,
        )
        slopes = traces.sum()
        total = slopes + squares.sum()
        if not total > 0:  # or NaN
            return float("nan")

        is_mixed = [i < j for i, j in list_pairs(self.count)]
        mixed = squares[:, is_mixed].sum()
        least = FLOOR**2 * slopes
        if mixed <= least:
            return 0.0
        return float(mixed / total)

    def contrast(self) -> tuple[Array, Array]:
        """Computes contrast and relative contrast, [n]; 1 at a dead point."""
        i, j = np.triu_indices(self.count, 1)
        overlaps = self.absolute[:, i, j]
        contrast = overlaps.sum(axis=1)

        squares = np.diagonal(
            self.first,
            axis1=1,
            axis2=2,
        )
        lengths = np.sqrt(squares)  # [n, F]
        products = lengths[:, i] * lengths[:, j]
        largest = products.sum(axis=1)
        has_length = largest > 0
        divisor = np.where(has_length, largest, 1.0)
        relative = contrast / divisor
        is_above = relative > 1  # by an ulp
        is_worst = is_dead(self.first) | is_above
        relative = np.where(is_worst, 1.0, relative)
        return contrast, relative

    def curvature(self) -> tuple[Array, Array]:
        """Computes K, NaN without a surface, and sqrt(det g), [n] each."""
        g = self.first
        g_xx = g[:, 0, 0]
        g_yy = g[:, 1, 1]
        g_xy = g[:, 0, 1]
        squares = g_xx * g_yy
        det = squares - g_xy**2
        is_surface = det > MIN_SQUARED_SINE * squares
        is_flat = is_dead(g) | ~is_surface

        # A flat point has no inverse: it gets the one of another tensor, and
        # NaN in the end.
        is_flat_tensor = is_flat[:, None, None]
        regular = np.where(is_flat_tensor, np.eye(2), g)
        inverse = np.linalg.inv(regular)
        transposed = np.swapaxes(self.cross, 1, 2)
        tangent = transposed @ inverse @ self.cross
        normal = self.second - tangent  # <II_ij, II_kl>, [n, 3, 3]

        opposite = normal[:, 0, 2]
        twisted = normal[:, 1, 1]
        bend = opposite - twisted
        det = np.where(is_flat, np.nan, det)
        curvature = bend / det
        area = np.sqrt(det)
        return curvature, area

    def summarize(self) -> Scores:
        """Averages over points, with median and integral of K."""
        contrast, relative = self.contrast()
        numbers = {
            "mixed_share": self.mixed_share(),
            "contrast": mean_or_none(contrast),
            "relative_contrast": mean_or_none(relative),
        }
        if self.count == 2:
            numbers |= self._summarize_curvature()

        return make_scores(numbers)

    def _summarize_curvature(self) -> Scores:
        curvature, area = self.curvature()
        has_surface = np.isfinite(curvature)
        curvature = curvature[has_surface]
        total = mean_or_none(curvature * area[has_surface])
        if total is not None:
            # The other points have no area.
            total *= has_surface.mean()
        return {
            "gaussian_curvature": median_or_none(curvature),
            "total_curvature": total,
        }


def make_interaction_fn(
    model: keras.Model,
    space: FactorSpace,
    num_units: int,
) -> InteractionFn:
    """Makes a function from points [n, F] to the interactions of stages.

    Args:
        model: From factors to images.
        space: The factors.
        num_units: Units of all stages together.
    """
    exact, fallback = jacobians.list_jacobians(model, space)
    varied = [factor for factor in space if not factor.categorical]
    ranges = [factor.high - factor.low for factor in varied]
    has_second = exact is not fallback
    is_outside = jacobians.find_outside_jacobians(model) is not None
    if len(ranges) < 2 or is_outside or not has_second:
        return lambda points: {}

    compute = functools.partial(
        compute_jet_products,
        make_stage_model(model),
        jacobian_fn=exact,
    )
    traced = tf.function(compute, autograph=False)
    most_points = _limit_points(num_units, len(ranges))

    def measure(points: Array) -> Interactions:
        """Summarizes each stage; nothing without second derivatives."""
        size = choose_batch_size(num_units, len(points))
        size = min(most_points, size)
        try:
            by_stage = evaluate_in_batches(traced, points, size)
        except LookupError:  # an operation without a further gradient
            return {}

        interactions = {}
        for stage, products in by_stage.items():
            interaction = Interaction(products, ranges)
            interactions[stage] = interaction.summarize()
        return interactions

    return measure


def _limit_points(num_units: int, num_factors: int) -> int:
    """Limits the points of one call, whose result has `MAX_NUMBERS`."""
    columns = num_factors * (num_factors + 5) // 2
    most_points = MAX_NUMBERS // (num_units * columns)
    return max(1, most_points)


def choose_points(grid: Array, count: int) -> Array:
    """Samples rows of a grid, always the same ones, in its order.

    Args:
        grid: Points, [n, F].
        count: How many at most.

    Returns:
        Points, [count, F].
    """
    rng = np.random.default_rng(0)
    order = rng.permutation(len(grid))
    rows = np.sort(order[:count])
    return grid[rows]
