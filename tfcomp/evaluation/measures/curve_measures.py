"""Measures across a gap of one ordered factor (C19, C20; figure 9).

Of several curves (a rotated "4" among other digits) those with a gap count,
and numbers are means over them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.interpolation import find_edges
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.analysis.manifolds import compute_gap_statistics
from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.datasets.grid_curves import Curve
from tfcomp.evaluation.study import Study

Numbers = dict[str, float | None]


def measure_interpolation(study: Study) -> Numbers:
    """Are outputs in the gap made of the images at its edges? (figure 9a-d)

    R^2 about zero in pixel space, over the angles of the gap: `edge_r2` (mean)
    and `edge_r2_min` of the output on the two true edge images with the best
    weights, `edge_linear_r2` with those of the linear interpolation,
    `edge_truth_r2` of the true image, which a network that rotates would
    score.
    """
    curves = list_gaps(study)
    if not curves:
        return {}
    found = [summarize_interpolation(study.score_curve(c)) for c in curves]
    names = {
        "edge_r2": "interpolation_r2",
        "edge_r2_min": "interpolation_r2_min",
        "edge_linear_r2": "linear_r2",
        "edge_truth_r2": "truth_r2",
    }
    return {
        name: average([summary[key] for summary in found])
        for name, key in names.items()
    }


def measure_gap(study: Study) -> dict[str, list[float | None]]:
    """Does the curve of a stage jump in the gap? (figure 9b)

    Inside the gap over outside, per stage: `gap_speed` and `gap_turning`
    (medians of steps and of angles between steps), `gap_max_speed` and
    `gap_max_turning` (the largest). 1 for a curve that does not know of the
    gap; a jump is a longest step far above 1.
    """
    curves = list_gaps(study)
    if not curves:
        return {}
    stages = [_compare_stage(study, curves, stage) for stage in study.stages]
    names = {
        "gap_speed": "speed_ratio",
        "gap_max_speed": "max_speed_ratio",
        "gap_turning": "turning_ratio",
        "gap_max_turning": "max_turning_ratio",
    }
    return {
        name: [average([n[key] for n in stage]) for stage in stages]
        for name, key in names.items()
    }


def measure_error_curve(study: Study) -> dict[str, list[float | None]]:
    """MSE over pixels along the one curve with a gap (figure 9a).

    `curve_values`: of the factor; `curve_mse`: at each of them.
    """
    curves = list_gaps(study)
    if len(curves) != 1:
        return {}
    (curve,) = curves
    evaluation = study.evaluation
    error = compute_mse_per_image(evaluation.images, evaluation.truth)
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": error[curve.rows].tolist(),
    }


def list_gaps(study: Study) -> list[Curve]:
    """The curves that have a held-out point between two known ones."""
    is_ood = study.splits.is_ood
    return [
        curve
        for curve in study.curves
        if len(find_edges(is_ood[curve.rows], curve.factor.periodic)[0])
    ]


def average(values: Sequence[float | None]) -> float | None:
    """Mean of the numbers; None if one of them does not exist."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return float(np.mean(known))


def _compare_stage(study: Study, curves: list[Curve], stage: str) -> list:
    return [
        compute_gap_statistics(
            study.trace_stage(curve, stage),
            study.splits.is_ood[curve.rows],
            curve.factor.periodic,
        )
        for curve in curves
    ]
