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
from tfcomp.metrics.registry import computes
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

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
    known_rows = np.flatnonzero(~is_ood)
    rows = np.flatnonzero(is_ood)
    if cycle:
        turns = [-cycle, 0, cycle]
        repeated = np.add.outer(turns, known_rows)
        known_rows = repeated.ravel()

    following = np.searchsorted(known_rows, rows)
    has_before = following > 0
    has_after = following < len(known_rows)
    is_inside = has_before & has_after
    rows = rows[is_inside]
    following = following[is_inside]

    before = known_rows[following - 1]
    after = known_rows[following]
    width = after - before
    fraction = (rows - before) / width
    edges = np.stack([before, after], axis=1)  # [m, 2]
    num_points = len(is_ood)
    edges = edges % (cycle or num_points)
    return rows, edges, fraction


def compute_interpolation(
    outputs: Array,
    truth: Array,
    is_ood: Array,
    cycle: int = 0,
) -> Interpolation:
    """Compares outputs between known points with the images at the edges.

    Args:
        outputs: Bright outputs along a curve, [n, ...].
        truth: Bright true images along it, [n, ...].
        is_ood: Which points are held out, [n].
        cycle: Steps once around a closed curve; 0 if open.
    """
    outputs = _flatten(outputs)
    truth = _flatten(truth)
    rows, edges, fraction = find_edges(is_ood, cycle)

    num_points = len(rows)
    weights = np.zeros((num_points, 2))
    r2 = np.zeros(num_points)
    linear_r2 = np.zeros(num_points)
    truth_r2 = np.zeros(num_points)
    for i, row in enumerate(rows):
        output = outputs[row]
        image = truth[row]
        ends = truth[edges[i]]
        linear = np.array([1 - fraction[i], fraction[i]])
        best = _fit_weights(ends, output)
        true_weights = _fit_weights(ends, image)

        weights[i] = best
        r2[i] = _compute_r2(output, best @ ends)
        linear_r2[i] = _compute_r2(output, linear @ ends)
        truth_r2[i] = _compute_r2(image, true_weights @ ends)
    return Interpolation(
        rows=rows,
        edges=edges,
        fraction=fraction,
        weights=weights,
        r2=r2,
        linear_r2=linear_r2,
        truth_r2=truth_r2,
    )


def interpolate_edges(truth: Array, is_ood: Array, cycle: int = 0) -> Array:
    """Interpolates images between two known ones.

    Args:
        truth: Images along a curve, [n, ...].
        is_ood: Which points are held out, [n].
        cycle: Steps once around a closed curve; 0 if open.

    Returns:
        Images, [n, ...]; inside of a gap they are blends of its edges.
    """
    rows, edges, fraction = find_edges(is_ood, cycle)
    images = np.array(truth, np.float64)
    before = images[edges[:, 0]]
    after = images[edges[:, 1]]
    rest = [1] * (images.ndim - 1)
    weight = fraction.reshape(-1, *rest)
    first = (1 - weight) * before
    images[rows] = first + weight * after
    return images


def _flatten(images: Array) -> Array:
    """Copies images [n, ...] as [n, pixels], float64."""
    flat = np.reshape(images, (len(images), -1))
    return flat.astype(np.float64)


def _fit_weights(ends: Array, target: Array) -> Array:
    """Fits an image [pixels] by weights [2] of two others, [2, pixels]."""
    solution = np.linalg.lstsq(ends.T, target, rcond=None)
    return solution[0]


def summarize_interpolation(scores: Interpolation) -> Scores:
    """Averages over held-out points, with the least R^2."""
    fraction = scores.fraction
    linear = np.stack([1 - fraction, fraction], axis=1)
    deviations = linear - 0.5
    variation = np.sum(deviations**2) or np.nan
    errors = scores.weights - linear
    error = np.sum(errors**2)
    weight_r2 = 1 - error / variation
    least = scores.r2.min(initial=np.inf)
    return {
        "interpolation_r2": mean_or_none(scores.r2),
        "interpolation_r2_min": finite_or_none(least),
        "linear_r2": mean_or_none(scores.linear_r2),
        "weight_r2": finite_or_none(weight_r2),
        "truth_r2": mean_or_none(scores.truth_r2),
    }


def _compute_r2(target: Array, prediction: Array) -> float:
    total = np.sum(target**2) or np.nan
    residual = target - prediction
    error = np.sum(residual**2)
    return float(1 - error / total)


@computes("run", AT_MOST_ONE, "edge_weight_r2 edge_linear_r2")
@computes("run", SHARE, "edge_r2 edge_r2_min edge_truth_r2")
def measure_interpolation(analysis: RunAnalysis) -> Scores:
    """Explains outputs in a gap by its edges; R^2 is about 0 (figure 9a-d)."""
    if not analysis.gaps:
        return {}

    summaries = []
    for curve in analysis.gaps:
        scores = analysis.score_gap(curve)
        summaries.append(summarize_interpolation(scores))
    numbers: Scores = {}
    for key in summaries[0]:
        name = key.removeprefix("interpolation_")
        values = [summary[key] for summary in summaries]
        numbers[f"edge_{name}"] = average(values)
    return numbers
