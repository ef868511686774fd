"""Scores of a layer's geometry, from metric tensors over the factor grid.

A metric tensor g = J^T J [F, F] says how far a layer's activations move when
the factors do (paper section 3.4, appendix B): J is the Jacobian [units, F] of
the activations by F factors. Functions take the tensors of n points, g
[n, F, F]. At a point, for two factors x and y:

    log-volume     = log sqrt(det g) = sum of log singular values of J
    factorization  = 1 - |g_xy| / (g_xx + g_yy)       in [1/2, 1]   (eq. 7)
    cosine form    = 1 - |g_xy| / sqrt(g_xx g_yy)     in [0, 1]

For more than two factors the last two are means over pairs of factors; for one
factor they are NaN. A *dead* point, where some factor moves nothing, has the
worst value of each score (1/2 and 0), and its volume has the floor. A point
whose metric is not finite (as of a diverged model) has NaN.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import MAX_DIRECTIONS
from tfcomp.metrics.features import iterate_units
from tfcomp.metrics.registry import (
    Chart,
    Rows,
    Scores,
    computes,
    mean_or_none,
    median_or_none,
)
from tfcomp.statistics.limits import POSITIVE, SHARE, Limits

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

# Smaller singular values, lengths and contrasts count as this. It is above the
# rounding of a float32 Jacobian.
FLOOR = 1e-6
# Units whose differences are in memory at a time.
_BLOCK_UNITS = 512
# Keeps divisors from 0. Only dead points, whose score is replaced, have such.
_TINY = np.finfo(np.float64).tiny

FACTORIZATION = Chart(
    "factorization",
    "Factorization",
    "score (1: orthogonal)",
    "The score says whether the factors move the activations of a stage in "
    "orthogonal directions; g is the metric tensor of the stage.",
)
VOLUME = Chart(
    "log_volume",
    "Log-volume",
    "",
    "Log sqrt(det g), where g is the metric tensor of a stage, says how much "
    "the stage stretches the factors.",
)


def is_dead(g: Array) -> Array:
    """Marks dead points, where a factor moves the activations by nothing.

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        Whether any length sqrt(g_ii) is at most `FLOOR`, [n]; false where the
        tensor is not finite.
    """
    squared_lengths = np.diagonal(
        set_nan(g),
        axis1=1,
        axis2=2,
    )  # [n, F]
    is_short = squared_lengths <= FLOOR**2
    return np.asarray(is_short.any(axis=1))


def find_floored(g: Array) -> Array:
    """Marks points where a singular value of J is at most `FLOOR`.

    Every dead point is one, and so is a point at which two factors move the
    activations in the same direction.

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        The mark of each point, [n]; true where the tensor is not finite.
    """
    g = np.nan_to_num(set_nan(g))
    if not g.shape[1]:
        return np.zeros(len(g), bool)

    eigenvalues = np.linalg.eigvalsh(g)  # [n, F], smallest first
    smallest = eigenvalues[:, 0]
    return smallest <= FLOOR**2


def compute_log_volume(g: Array) -> Array:
    """Computes log sqrt(det g) (section 3.4).

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        The log-volume of each point, [n]; singular values count as `FLOOR` at
        least. NaN without factors, or where the tensor is not finite.
    """
    g = set_nan(g)
    if not g.shape[1]:
        return np.full(len(g), np.nan)

    # By eigenvalues, since a determinant would underflow. LAPACK may refuse
    # NaN: it is given zeros instead.
    eigenvalues = np.linalg.eigvalsh(np.nan_to_num(g))  # [n, F]
    eigenvalues = np.maximum(eigenvalues, FLOOR**2)
    singular_values = np.sqrt(eigenvalues)
    log_volume = np.log(singular_values).sum(axis=1)
    is_missing = np.isnan(g[:, 0, 0])
    return np.where(is_missing, np.nan, log_volume)


@np.errstate(
    invalid="ignore",
    over="ignore",
)
def divide_by_contrast(
    log_volume: Array,
    activations: Array,
    num_factors: int,
) -> Array:
    """Computes log (V / contrast^F), which fading images do not change.

    A stage that is multiplied by c multiplies its Jacobian, too, and so its
    volume by c^F. Contrast is the root mean square over units of how far a unit
    is from its median over all points: the bias of a unit, which stays where an
    image fades, is no contrast. Codes that are not local, as ramps, have little
    contrast where they pass their median, also in untrained networks.

    Args:
        log_volume: By `compute_log_volume`, [n].
        activations: The stage at these points, which cover the grid,
            [n, units].
        num_factors: Number of factors F that the volume is of.

    Returns:
        Log-volumes of a stage of contrast 1, [n]; a contrast counts as
        `FLOOR` at least.
    """
    squares = np.zeros(len(activations))
    for part in iterate_units(activations, _BLOCK_UNITS):
        distance = part - np.median(part, axis=0)
        squares += np.sum(distance**2, axis=1, dtype=np.float64)
    contrast = np.sqrt(squares / activations.shape[1])
    contrast = np.maximum(contrast, FLOOR)
    return log_volume - num_factors * np.log(contrast)


def compute_factorization(g: Array) -> Array:
    """Computes the paper's factorization score (eq. 7).

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        The score of each point, [n], in [1/2, 1].
    """
    return _average_pairs(g, np.add, worst=0.5)


def compute_cosine_factorization(g: Array) -> Array:
    """Computes 1 - |cosine| of the angle between directions of factors.

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        The score of each point, [n], in [0, 1].
    """

    def multiply_lengths(xx: Array, yy: Array) -> Array:
        return np.sqrt(xx) * np.sqrt(yy)

    return _average_pairs(g, multiply_lengths, worst=0.0)


def compute_worst_pair(g: Array) -> float:
    """Finds the least mean of the cosine form over points, of all pairs.

    Args:
        g: Metric tensors of two factors or more, [n, F, F].

    Returns:
        The mean of the pair, in [0, 1].
    """
    scores = []
    for pair in itertools.combinations(range(g.shape[1]), 2):
        rows = g[:, pair]  # [n, 2, F]
        part = rows[:, :, pair]  # [n, 2, 2]
        cosine_form = compute_cosine_factorization(part)
        scores.append(float(cosine_form.mean()))
    return min(scores)


def compute_chance(num_units: int) -> float:
    """Computes the mean cosine form of random directions in d units.

    1 - Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2)).
    """
    numerator = math.lgamma(num_units / 2)
    denominator = math.lgamma((num_units + 1) / 2)
    ratio = math.exp(numerator - denominator)
    cosine = ratio / math.sqrt(math.pi)
    # With 1 unit the cosine is 1, which rounding may exceed.
    return max(1 - cosine, 0.0)


def compute_ratio_factorization(g: Array) -> float:
    """Computes 1 - mean |g_xy| / mean (g_xx + g_yy), as the published code.

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        The score of all points together, the mean over pairs of factors. It is
        1/2 if all points are dead, where the published code has 1, and NaN
        for fewer than two factors.
    """
    scores = []
    for xx, yy, xy in _list_pairs(g):
        total = np.mean(xx + yy)
        if total <= FLOOR**2:
            scores.append(0.5)
        else:
            scores.append(1 - np.mean(np.abs(xy)) / total)

    if not scores:
        return float("nan")
    return float(np.mean(scores))


def compute_gradient_metrics(
    activations: Array,
    shape: Sequence[int],
    axes: Sequence[int],
) -> Array:
    """Computes metric tensors by differences, as the published code.

    Differences per step on the grid are central, and one-sided at the border.
    For bumps of sigma 1 their squared length, divided by the derivative's, is
    .63 inside the grid and 1.24 at the border.

    Args:
        activations: One stage over a complete grid, the last factor fastest,
            [n, units].
        shape: Numbers of values of all factors.
        axes: Which factors are ordered, F of them.

    Returns:
        Metric tensors [n, F, F]; zeros for a factor with one value.
    """
    num_factors = len(axes)
    g = np.zeros((len(activations), num_factors, num_factors))
    for part in iterate_units(activations, _BLOCK_UNITS):
        maps = part.reshape(*shape, -1)  # [*shape, units of the block]
        maps = maps.astype(np.float64)
        slopes = []
        for axis in axes:
            if shape[axis] > 1:
                slope = np.gradient(maps, axis=axis)
            else:
                slope = np.zeros_like(maps)
            slopes.append(slope)

        for i, j in itertools.product(range(num_factors), repeat=2):
            product = np.einsum("...u,...u->...", slopes[i], slopes[j])
            g[:, i, j] += product.ravel()
    return g


@computes(
    "stage",
    Limits(0.5, 1),
    better="high",
    chart=FACTORIZATION,
    is_leading=True,
    factorization="factorization score: mean over all grid points of 1 - "
    "|g_xy| / (g_xx + g_yy) (eq. 7), from 1/2 to 1",
)
@computes(
    "stage",
    SHARE,
    better="high",
    chart=FACTORIZATION,
    is_leading=True,
    cosine_factorization="factorization, cosine form: mean of 1 - |g_xy| / "
    "sqrt(g_xx g_yy), from 0 to 1",
)
@computes(
    "stage",
    chart=VOLUME,
    log_volume_id="log-volume, ID: mean over ID points",
    log_volume_ood="log-volume, OOD: mean over OOD points",
)
@computes(
    "stage",
    SHARE,
    better="low",
    dead_fraction="share of dead points: share of the points at which some "
    "factor moves nothing, or at most 1e-6 per unit",
)
def summarize_geometry(g: Array, is_ood: Array) -> Scores:
    """Averages the scores of a stage over grid points (section 3.4).

    Args:
        g: Metric tensors of the stage, [n, F, F].
        is_ood: Which points are held out, [n].

    Returns:
        Numbers by name; None where one is not finite.
    """
    log_volume = compute_log_volume(g)
    dead_fraction = None
    if g.shape[1]:
        dead_fraction = mean_or_none(is_dead(g))

    return {
        "factorization": mean_or_none(compute_factorization(g)),
        "cosine_factorization": mean_or_none(compute_cosine_factorization(g)),
        "log_volume_id": mean_or_none(log_volume[~is_ood]),
        "log_volume_ood": mean_or_none(log_volume[is_ood]),
        "dead_fraction": dead_fraction,
    }


def set_nan(g: Array) -> Array:
    """Sets a tensor to NaN if any of its entries is not finite.

    Args:
        g: Metric tensors, [n, F, F].

    Returns:
        The tensors as float64, [n, F, F], finite or all NaN.
    """
    g = np.asarray(g, np.float64)
    is_finite = np.isfinite(g).all(axis=(1, 2), keepdims=True)
    return np.where(is_finite, g, np.nan)


def _list_pairs(g: Array) -> list[tuple[Array, Array, Array]]:
    """Lists g_xx, g_yy and g_xy, each [n], of every pair of factors."""
    g = set_nan(g)
    pairs = []
    for i, j in itertools.combinations(range(g.shape[1]), 2):
        pairs.append((g[:, i, i], g[:, j, j], g[:, i, j]))
    return pairs


def _average_pairs(
    g: Array,
    combine: Callable[[Array, Array], Array],
    worst: float,
) -> Array:
    """Averages 1 - |g_xy| / combine(g_xx, g_yy) over pairs of factors.

    Args:
        g: Metric tensors, [n, F, F].
        combine: Makes the divisor from the squared lengths of two directions.
        worst: The least score, which dead points have.

    Returns:
        The score of each point, [n], in [worst, 1].
    """
    scores = []
    for xx, yy, xy in _list_pairs(g):
        largest = combine(xx, yy)
        divisor = np.maximum(largest, _TINY)
        share = np.abs(xy) / divisor
        scores.append(1 - share)
    if not scores:
        return np.full(len(g), np.nan)

    # Rounding may leave the range by an ulp, as by a |cosine| of 1 + 2e-16.
    mean = np.mean(scores, axis=0).clip(worst, 1.0)
    return np.where(is_dead(g), worst, mean)


@computes(
    "stages",
    POSITIVE,
    "log_volume_sd log_volume_sd_id log_volume_sd_ood "
    "log_volume_median_deviation_id log_volume_median_deviation_ood",
)
@computes(
    "stages",
    names="log_volume_median_id log_volume_median_ood log_volume_difference",
)
@computes(
    "stages",
    SHARE,
    "floor_fraction_id floor_fraction_ood",
    better="low",
)
def measure_volume_spread(analysis: RunAnalysis) -> Rows:
    """Tests how evenly a stage spreads the factors (section 3.4, figure 2e).

    Returns:
        By stage: mean OOD less mean ID log-volume, and for all points, ID and
        OOD points the spread, median and share of floored points.
    """
    is_id = analysis.splits.is_id
    is_ood = analysis.splits.is_ood

    rows: Rows = {}
    for stage, volume in analysis.log_volume.items():
        row = _spread("log_volume", volume, analysis)
        row["log_volume_difference"] = None
        if is_id.any() and is_ood.any():
            difference = volume[is_ood].mean() - volume[is_id].mean()
            row["log_volume_difference"] = difference

        g = analysis.metrics[stage]
        for subset, points in analysis.subsets.items():  # `id` and `ood`
            volumes = volume[points]
            row[f"log_volume_sd_{subset}"] = None
            if points.any():
                row[f"log_volume_sd_{subset}"] = volumes.std()
            row[f"log_volume_median_{subset}"] = median_or_none(volumes)
            floored = find_floored(g[points])
            row[f"floor_fraction_{subset}"] = mean_or_none(floored)
        rows[stage] = row
    return rows


@computes(
    "stages",
    POSITIVE,
    "log_volume_per_contrast_sd log_volume_per_contrast_median_deviation_id "
    "log_volume_per_contrast_median_deviation_ood",
)
def measure_volume_per_contrast(analysis: RunAnalysis) -> Rows:
    """Measures the spread of log-volumes per contrast (claim C9).

    Where the images of a stage only fade, its volume shrinks but the volume per
    contrast does not: what remains is a warp of the manifold.
    """
    rows: Rows = {}
    for stage, volume in analysis.volume_per_contrast.items():
        rows[stage] = _spread("log_volume_per_contrast", volume, analysis)
    return rows


def _spread(name: str, volume: Array, analysis: RunAnalysis) -> Scores:
    """Measures how much log-volumes [n] vary, and how far from the ID median.

    Args:
        name: The beginning of the names of the numbers.
        volume: Log-volume at every grid point, [n].
        analysis: The run, which has the split.

    Returns:
        The standard deviation over all points, and the median distance from
        the ID median by subset.
    """
    id_median = np.median(volume[analysis.splits.is_id])
    distance = np.abs(volume - id_median)
    numbers: Scores = {f"{name}_sd": volume.std()}
    for subset, points in analysis.subsets.items():
        deviation = median_or_none(distance[points])
        numbers[f"{name}_median_deviation_{subset}"] = deviation
    return numbers


@computes(
    "stages",
    Limits(0.5, 1),
    better="high",
    chart=FACTORIZATION,
    ratio_factorization="factorization, ratio of means: the score as the "
    "published code computes it, for comparison: it divides the mean of |g_xy| "
    "by the mean of g_xx + g_yy, so that points with long directions dominate",
)
@computes(
    "stages",
    Limits(0.5, 1),
    "scaled_factorization",
    better="high",
)
@computes(
    "stages",
    SHARE,
    "worst_pair_factorization",
    better="high",
)
@computes("stages", SHARE, "chance_factorization")
def measure_orthogonality(analysis: RunAnalysis) -> Rows:
    """Scores the angles between directions of factors (figures 2a to 2d).

    Returns:
        Scores by stage; nothing unless 2 to `MAX_DIRECTIONS` factors are
        ordered.
    """
    factors = [f for f in analysis.dataset.space if not f.categorical]
    if not 1 < len(factors) <= MAX_DIRECTIONS:
        return {}  # of one direction there is nothing to factorize

    # Scaled by its range, no factor weighs more for having a finer unit.
    ranges = np.array([factor.high - factor.low for factor in factors])  # [F]
    scale_rows = ranges[:, None]  # [F, 1]
    rows: Rows = {}
    for stage, g in analysis.metrics.items():
        scaled = compute_factorization(g * scale_rows * ranges)
        num_units = analysis.stage_sizes[stage]
        rows[stage] = {
            "factorization": mean_or_none(compute_factorization(g)),
            "ratio_factorization": compute_ratio_factorization(g),
            "scaled_factorization": mean_or_none(scaled),
            "worst_pair_factorization": compute_worst_pair(g),
            "chance_factorization": compute_chance(num_units),
        }
    return rows


@computes(
    "stages",
    Limits(0.5, 1),
    "factorization_gradient_ratio_of_means",
    better="high",
)
def measure_published_factorization(analysis: RunAnalysis) -> Rows:
    """Computes eq. 7 as the published code does, to compare with its numbers.

    It takes differences in place of derivatives, and a ratio of means.
    """
    rows: Rows = {}
    if len(analysis.dataset.space.ordered) < 2:
        return rows
    for stage, g in analysis.gradient_metrics.items():  # of a complete grid
        ratio = compute_ratio_factorization(g)
        rows[stage] = {"factorization_gradient_ratio_of_means": ratio}
    return rows
