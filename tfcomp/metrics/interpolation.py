"""Compares outputs inside a gap with the images at its edges.

Appendix F.2 of the paper, figure 9. For an output o at the fraction t of the
gap and the edge images a and b, the last ones before and after the gap:

    r2          of o on a and b, the best weights (least squares)
    linear_r2   of o as (1 - t) a + t b, the weights of the claim
    truth_r2    of the true image on a and b, which overlap

R^2 = 1 - SSE / SST with SST about zero and no intercept. A copy of the nearest
edge has an R^2 of 1, too. What tells a blend is

    weight_r2   of the best weights on (1 - t, t), over all held-out points

about the mean of these, 1/2: 1 for a linear blend, about 0 for copies of the
nearest edge, below 0 for copies of one edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics.features import (
    Scores,
    average,
    finite_or_none,
    mean_or_none,
)
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import AT_MOST_ONE, POSITIVE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis


@dataclass(frozen=True)
class Interpolation:
    """Scores per held-out point, in the order of the curve, [m]."""

    rows: Array
    edges: Array  # [m, 2]
    fraction: Array
    weights: Array  # [m, 2]
    r2: Array
    linear_r2: Array
    truth_r2: Array


def find_edges(is_ood: Array, cycle: int = 0) -> tuple[Array, Array, Array]:
    """Finds the known points before and after held-out points of a curve.

    Args:
        is_ood: Which points are held out, in the order of the curve, [n].
        cycle: Steps once around a closed curve (`Factor.cycle`); 0 if open.

    Returns:
        Rows of held-out points between known ones [m], rows of their edges
        [m, 2], and the fraction of the way between these [m].
    """
    is_ood = np.asarray(is_ood, bool)
    known = np.flatnonzero(~is_ood)
    rows = np.flatnonzero(is_ood)
    if cycle:
        known = np.add.outer([-cycle, 0, cycle], known).ravel()
    after = np.searchsorted(known, rows)
    inside = (after > 0) & (after < len(known))
    rows, after = rows[inside], after[inside]
    edges = np.stack([known[after - 1], known[after]], axis=1)  # [m, 2]
    fraction = (rows - edges[:, 0]) / (edges[:, 1] - edges[:, 0])
    return rows, edges % (cycle or len(is_ood)), fraction


def compute_interpolation(
    outputs: Array, truth: Array, is_ood: Array, cycle: int = 0
) -> Interpolation:
    """Compares outputs [n, ...] between known points with the true images."""
    outputs = np.reshape(outputs, (len(outputs), -1)).astype(np.float64)
    truth = np.reshape(truth, (len(truth), -1)).astype(np.float64)
    rows, edges, fraction = find_edges(is_ood, cycle)
    results = []
    for row, pair, t in zip(rows, edges, fraction, strict=True):
        output, image, ends = outputs[row], truth[row], truth[pair]
        weights = np.linalg.lstsq(ends.T, output, rcond=None)[0]
        ideal = np.linalg.lstsq(ends.T, image, rcond=None)[0]
        scores = (
            _compute_r2(output, weights @ ends),
            _compute_r2(output, np.array([1 - t, t]) @ ends),
            _compute_r2(image, ideal @ ends),
        )
        results.append((*weights, *scores))
    table = np.array(results).reshape(len(rows), 5)
    return Interpolation(rows, edges, fraction, table[:, :2], *table[:, 2:].T)


def interpolate_edges(truth: Array, is_ood: Array, cycle: int = 0) -> Array:
    """Interpolates the images [n, ...] between two known ones."""
    rows, edges, fraction = find_edges(is_ood, cycle)
    images = np.array(truth, np.float64)
    weight = fraction.reshape(-1, *[1] * (images.ndim - 1))
    before, after = images[edges[:, 0]], images[edges[:, 1]]
    images[rows] = (1 - weight) * before + weight * after
    return images


def summarize_interpolation(scores: Interpolation) -> Scores:
    """Returns means and the least R^2; None if not finite."""
    linear = np.stack([1 - scores.fraction, scores.fraction], axis=1)
    spread = np.sum((linear - 0.5) ** 2) or np.nan
    weight_r2 = 1 - np.sum((scores.weights - linear) ** 2) / spread
    return {
        "interpolation_r2": mean_or_none(scores.r2),
        "interpolation_r2_min": finite_or_none(scores.r2.min(initial=np.inf)),
        "linear_r2": mean_or_none(scores.linear_r2),
        "weight_r2": finite_or_none(weight_r2),
        "truth_r2": mean_or_none(scores.truth_r2),
    }


def _compute_r2(target: Array, prediction: Array) -> float:
    total = np.sum(target**2) or np.nan
    return float(1 - np.sum((target - prediction) ** 2) / total)


@computes("run", AT_MOST_ONE, "edge_weight_r2 edge_linear_r2")
@computes("run", SHARE, "edge_r2 edge_r2_min edge_truth_r2")
def measure_interpolation(analysis: RunAnalysis) -> Scores:
    """Explains outputs in a gap by its edges; R^2 is about 0 (figure 9a-d)."""
    if not analysis.gaps:
        return {}
    scores = [analysis.score_gap(curve) for curve in analysis.gaps]
    summaries = [summarize_interpolation(score) for score in scores]
    return {
        f"edge_{key.removeprefix('interpolation_')}": average(
            summary[key] for summary in summaries
        )
        for key in summaries[0]
    }


@computes("run", names="curve_values")
@computes("run", POSITIVE, "curve_mse", better="low")
def measure_error_curve(analysis: RunAnalysis) -> dict[str, list[float]]:
    """Lists the error along the one curve with a gap (figure 9a)."""
    if len(analysis.gaps) != 1:
        return {}
    (curve,) = analysis.gaps
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": analysis.error[curve.rows].tolist(),
    }
