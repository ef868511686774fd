"""Measures: what the claims need of a finished run beyond `metrics.json`.

A measure maps a study to numbers by name: a number, or a list with one number
per stage, in the order of `stages` (per distance or per angle where it says
so). A measure that does not apply to a run returns nothing, so that any
finished run can be measured. The sections of the analysis report show the
same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.analysis.border import correlate_with_distance
from tfcomp.analysis.finite import finite_or_none
from tfcomp.analysis.finite import mean_or_none
from tfcomp.analysis.geometry import compute_ratio_factorization
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.analysis.superposition import FAR
from tfcomp.analysis.superposition import PREDICTORS
from tfcomp.analysis.superposition import summarize_superposition
from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.measure_files import Measures
from tfcomp.evaluation.measure_files import is_measured
from tfcomp.evaluation.measure_files import read_measures
from tfcomp.evaluation.measure_files import write_measures
from tfcomp.evaluation.study import Study

Numbers = dict[str, float | None]
Lists = dict[str, list[float | None]]


def measure_run(path: str | Path) -> Measures:
    """Measures a finished run and writes `measures.json` into its folder.

    A run that this version of the code has measured is only read.

    Args:
        path: The run folder.

    Returns:
        The content of the file: numbers, null, or lists of them by name.

    Raises:
        RunError: If the folder is no finished run, is damaged, or cannot be
            written.
    """
    path = Path(path)
    if not is_measured(path):
        write_measures(path, measure_study(Study(load_run(path))))
    return read_measures(path)


def measure_study(study: Study) -> Measures:
    """All measures that apply to a run, and the names of its stages."""
    measures: Measures = {"stages": study.stages}
    for measure in MEASURES:
        measures |= {k: _to_plain(v) for k, v in measure(study).items()}
    return measures


def measure_border(study: Study) -> Numbers | Lists:
    """Does the OOD error rise with the distance to ID? (section 3.2)

    `border_rank_correlation`: Spearman's, over OOD points, of the relative
    error and the distance to the nearest ID grid point. A list,
    `border_relative_mse`: mean error at a distance of 1, 2, ... grid steps.
    """
    if not study.splits.is_ood.any():
        return {}
    error, distance = study.relative_error, study.border_distance
    steps = np.unique(distance[np.isfinite(distance) & (distance > 0)])
    return {
        "border_rank_correlation": correlate_with_distance(error, distance),
        "border_relative_mse": [
            float(error[distance == step].mean()) for step in steps
        ],
    }


def measure_superposition(study: Study) -> Numbers:
    """Are OOD outputs sums of memorized ones? (section 3.3, figure 1d)

    `superposition_r2` and `conjunctive_r2`: R^2 of OOD outputs on the mean
    ID outputs that share x and that share y, and on as many means of the
    nearest ID outputs; means over OOD points. `superposition_span_r2` and
    `conjunctive_span_r2`: on all ID outputs that share x or y with
    nonnegative weights of their own, and on as many nearest ones. Of points
    at least `FAR` grid steps from ID: `superposition_far_r2`, and so on.
    """
    if not study.has_hole:
        return {}
    numbers: Numbers = {}
    for infix, distance in (("", 0.0), ("far_", FAR)):
        summary = summarize_superposition(study.superposition, distance)
        for name in PREDICTORS:
            numbers[f"{name}_{infix}r2"] = summary[f"{name}_r2"]
    return numbers


def measure_alignment(study: Study) -> Numbers:
    """Which ideal kernel has the model learned? (figure 1e, equations 3, 4)

    The numbers of `Study.align` for the cosines of all pairs of outputs.
    """
    if not study.has_hole:
        return {}
    return study.align(compute_cosine_gram(study.bright_outputs))


def measure_log_volume(study: Study) -> Lists:
    """How evenly does a stage spread the factors? (section 3.4, figure 2e)

    `log_volume_sd`, `log_volume_sd_id`, `log_volume_sd_ood`: standard
    deviation of log sqrt(det g) over all, ID and OOD grid points; 0 for a
    manifold that is stretched everywhere alike, whatever its scale.
    `log_volume_difference`: mean over OOD less mean over ID points.
    """
    is_id, is_ood = study.splits.is_id, study.splits.is_ood
    volumes = list(study.log_volume.values())
    subsets = {"": is_id | is_ood, "_id": is_id, "_ood": is_ood}
    lists: Lists = {
        f"log_volume_sd{suffix}": [
            np.std(v[rows]) if rows.any() else None for v in volumes
        ]
        for suffix, rows in subsets.items()
    }
    both = is_id.any() and is_ood.any()
    lists["log_volume_difference"] = [
        v[is_ood].mean() - v[is_id].mean() if both else None for v in volumes
    ]
    return lists


def measure_ratio_factorization(study: Study) -> Lists:
    """Factorization by stage as the published code has it, for comparison.

    `ratio_factorization`: equation 7 with the ratio of means over points in
    place of the mean of ratios, which `metrics.json` has.
    """
    if len(study.dataset.space.ordered) < 2:
        return {}  # of one direction there is nothing to factorize
    metrics = study.metrics.values()
    return {"ratio_factorization": [*map(compute_ratio_factorization, metrics)]}


def measure_tuning(study: Study) -> Lists:
    """Do units answer to one factor or to combinations? (figures 4e, 15)

    `additive_share`: share of the variance of a unit over the grid that is a
    sum of functions of single factors, mean over live units; 1 for stripes.
    `additive_share_weighted`: the same, units weighted by their variance.
    """
    if len(study.dataset.space) < 2:
        return {}  # of one factor everything is additive
    summaries = [summarize_tuning(t) for t in study.tuning.values()]
    names = {
        "additive_share": "additive_share_mean",
        "additive_share_weighted": "additive_share_weighted",
    }
    return {name: [s[key] for s in summaries] for name, key in names.items()}


def measure_interpolation(study: Study) -> Numbers:
    """Are outputs in the gap made of the images at its edges? (figure 9a-d)

    R^2 about zero in pixel space, over the angles of the gap: `edge_r2` (mean)
    and `edge_r2_min` of the output on the two true edge images with the best
    weights, `edge_linear_r2` with those of the linear interpolation,
    `edge_truth_r2` of the true image, which a network that rotates would
    score. Means over the curves with a gap, of which a rotated "4" among
    other digits has one.
    """
    if not study.gaps:
        return {}
    found = [summarize_interpolation(study.score_gap(c)) for c in study.gaps]
    names = {
        "edge_r2": "interpolation_r2",
        "edge_r2_min": "interpolation_r2_min",
        "edge_linear_r2": "linear_r2",
        "edge_truth_r2": "truth_r2",
    }
    return {
        name: _average(summary[key] for summary in found)
        for name, key in names.items()
    }


def measure_gap(study: Study) -> Lists:
    """Does the curve of a stage jump in the gap? (figure 9b)

    Inside the gap over outside, per stage: `gap_speed` and `gap_turning`
    (medians of steps and of angles between steps), `gap_max_speed` and
    `gap_max_turning` (the largest). 1 for a curve that does not know of the
    gap; a jump is a longest step far above 1. Means over the curves with a
    gap.
    """
    if not study.gaps:
        return {}
    stages = [
        [study.compare_gap(curve, stage) for curve in study.gaps]
        for stage in study.stages
    ]
    names = {
        "gap_speed": "speed_ratio",
        "gap_max_speed": "max_speed_ratio",
        "gap_turning": "turning_ratio",
        "gap_max_turning": "max_turning_ratio",
    }
    return {
        name: [_average(ratios[key] for ratios in stage) for stage in stages]
        for name, key in names.items()
    }


def measure_error_curve(study: Study) -> Lists:
    """MSE over pixels along the one curve with a gap (figure 9a).

    `curve_values`: of the factor; `curve_mse`: at each of them.
    """
    if len(study.gaps) != 1:
        return {}
    (curve,) = study.gaps
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": study.error[curve.rows].tolist(),
    }


MEASURES: tuple[Callable[[Study], dict[str, Any]], ...] = (
    measure_border,
    measure_superposition,
    measure_alignment,
    measure_log_volume,
    measure_ratio_factorization,
    measure_tuning,
    measure_interpolation,
    measure_gap,
    measure_error_curve,
)


def _average(values: Iterable[float | None]) -> float | None:
    # None, as NaN, if one of them does not exist.
    return mean_or_none(np.array(list(values), float))


def _to_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [finite_or_none(item) for item in value]
    return finite_or_none(value)
