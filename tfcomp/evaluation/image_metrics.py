"""Metrics of a run, of its images and embeddings; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.analysis import kernels, schmidt, sharing
from tfcomp.analysis.distances import correlate_with_distance
from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.statistics.metric import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    SHARE,
    Limits,
    computes,
)

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis

MAX_KERNEL = 2500  # points whose Schmidt values take a second
Numbers = dict[str, float | None]
Rows = dict[str, Numbers]  # by stage


@computes("run", CORRELATION, "border_rank_correlation")
@computes("run", POSITIVE, "border_relative_mse", better="low")
def compute_border(analysis: RunAnalysis) -> dict[str, Any]:
    """Relates the OOD error to the distance to ID (section 3.2)."""
    if not analysis.splits.is_ood.any():
        return {}
    error, distance = analysis.error_ratio, analysis.border_distance
    if np.isinf(distance).all():
        return {}  # too many combinations to count steps
    last = int(distance[np.isfinite(distance)].max())
    return {
        "border_rank_correlation": correlate_with_distance(error, distance),
        "border_relative_mse": [
            mean_or_none(error[distance == step]) for step in range(1, last + 1)
        ],
    }


@computes(
    "run",
    AT_MOST_ONE,
    "sharing_far_r2 rival_far_r2 single_far_r2 "
    "sharing_near_r2 rival_near_r2 single_near_r2 "
    "sharing_far_r2_centered rival_far_r2_centered single_far_r2_centered "
    "sharing_near_r2_centered rival_near_r2_centered single_near_r2_centered "
    "sharing_truth_r2",
)
@computes("run", SHARE, "faint_far_share faint_near_share", better="low")
def compute_sharing(analysis: RunAnalysis) -> Numbers:
    """Explains OOD outputs by memories that share a factor (figure 1d)."""
    if not analysis.has_hole:
        return {}
    splits, outputs = analysis.splits, analysis.bright_outputs
    points = splits.grid, outputs, splits.is_ood, analysis.dataset.space
    distance = analysis.superposition.distance
    faint = sharing.find_faint(outputs, splits.is_ood)
    r2 = sharing.compute_sharing(*points)
    scores = sharing.summarize_sharing(r2, distance, faint)
    r2 = sharing.compute_sharing(*points, centered=True)
    centered = sharing.summarize_sharing(r2, distance)
    scores |= {f"{name}_centered": value for name, value in centered.items()}
    return scores | {"sharing_truth_r2": analysis.truth_sharing}


@computes("run", Limits(0, 2), "ssim_error_id ssim_error_ood", better="low")
def compute_ssim(analysis: RunAnalysis) -> Numbers:
    """Averages 1 - SSIM, which the published code reports beside the MSE."""
    if analysis.ssim_error is None:
        return {}
    return {
        f"ssim_error_{name}": mean_or_none(analysis.ssim_error[rows])
        for name, rows in analysis.subsets.items()
    }


@computes(
    "run", SHARE, "multiple_peaks_id multiple_peaks_ood no_peak_id no_peak_ood"
)
def compute_peaks(analysis: RunAnalysis) -> Numbers:
    """Counts images with several bumps, and with none (section 3.2)."""
    if not analysis.dataset.has_position:
        return {}
    images = analysis.evaluation.images
    counts = count_own_peaks(images, analysis.dataset.polarity)
    numbers: Numbers = {}
    for name, rows in analysis.subsets.items():
        peaks = counts[rows]
        unknown = np.where(np.isfinite(peaks), 0.0, np.nan)
        numbers[f"multiple_peaks_{name}"] = mean_or_none((peaks > 1) + unknown)
        numbers[f"no_peak_{name}"] = mean_or_none((peaks == 0) + unknown)
    return numbers


@computes("run", SHARE, "interaction_r2_id interaction_r2_ood", better="high")
@computes("run", POSITIVE, "interaction_amplitude_id interaction_amplitude_ood")
@computes(
    "run",
    SHARE,
    "interaction_variance_id interaction_variance_ood "
    "interaction_truth_variance_id interaction_truth_variance_ood",
)
def compute_image_interaction(analysis: RunAnalysis) -> Numbers:
    """Tests whether images are sums over rows and columns (section 4.2)."""
    if not analysis.dataset.has_position:
        return {}
    numbers: Numbers = {}
    found = analysis.evaluation
    for name, rows in analysis.subsets.items():
        pair = found.images[rows], found.truth[rows]
        kinds = schmidt.compute_interaction_size(*pair)
        kinds["r2"] = schmidt.compute_interaction_r2(*pair)
        numbers |= {f"interaction_{k}_{name}": x for k, x in kinds.items()}
    return numbers


@computes(
    "run",
    CORRELATION,
    "alignment_factorized alignment_conjunctive alignment_constant "
    "alignment_factorized_smooth alignment_radial alignment_additive_best "
    "alignment_radial_best",
)
@computes(
    "run",
    POSITIVE,
    "alignment_additive_width alignment_radial_width",
    unit="steps",
)
@computes(
    "run",
    SHARE,
    "anova_first anova_second anova_single anova_pairwise anova_higher "
    "factorization_ratio schmidt_centered_explained_1 "
    "schmidt_centered_explained_2",
)
@computes("run", Limits(1), "schmidt_centered_effective_rank")
def compute_alignment(analysis: RunAnalysis) -> Numbers:
    """Compares outputs with ideal kernels (figure 1e, equations 3, 4)."""
    if not analysis.has_hole:
        return {}
    gram = kernels.compute_cosine_gram(analysis.bright_outputs)
    splits, index = analysis.splits, analysis.index
    numbers = analysis.align(gram)
    if analysis.is_plane:
        numbers |= kernels.summarize_best_alignment(gram, index, splits.is_ood)
        if len(gram) <= MAX_KERNEL:
            numbers |= schmidt.summarize_centered_schmidt(gram, index)
    elif splits.is_complete:
        numbers |= schmidt.summarize_anova(gram, index)
    return numbers


@computes("run", AT_MOST_ONE, "edge_weight_r2 edge_linear_r2")
@computes("run", SHARE, "edge_r2 edge_r2_min edge_truth_r2")
def compute_interpolation(analysis: RunAnalysis) -> Numbers:
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
def compute_error_curve(analysis: RunAnalysis) -> dict[str, list[float]]:
    """Lists the error along the one curve with a gap (figure 9a)."""
    if len(analysis.gaps) != 1:
        return {}
    (curve,) = analysis.gaps
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": analysis.error[curve.rows].tolist(),
    }


@computes("run", CORRELATION, "neighbor_cosine")
def compute_neighbors(analysis: RunAnalysis) -> Numbers:
    """Compares low-rank embeddings of neighboring values (figure 3)."""
    means = []
    for factor in analysis.dataset.space:
        if factor.name in analysis.embeddings and not factor.categorical:
            outputs = analysis.embeddings[factor.name].matrices
            cosines = kernels.compute_neighbor_cosines(
                outputs, factor.is_closed
            )
            means.append(mean_or_none(cosines))
    return {"neighbor_cosine": average(means)} if means else {}


@computes("run", Limits(1), "axis_ratio")
def compute_axis_ratio(analysis: RunAnalysis) -> Numbers:
    """Tests how clearly hard rendering separates axes, by ID alone."""
    summaries = (e.summary for e in analysis.embeddings.values())
    ratios = [r for s in summaries if (r := s.get("ratio")) is not None]
    return {"axis_ratio": min(ratios)} if ratios else {}


def average(values: Iterable[float | None]) -> float | None:
    """Returns the mean; None if one of the values does not exist."""
    return mean_or_none(np.array(list(values), float))
