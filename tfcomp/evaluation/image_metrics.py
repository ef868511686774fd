"""Metrics of the images that a model draws; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.analysis import sharing
from tfcomp.analysis.border import correlate_with_distance
from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.analysis.kernel_anova import compute_interaction_r2, summarize_anova
from tfcomp.analysis.kernels import summarize_best_alignment
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.analysis.superposition import FAR
from tfcomp.statistics.limits import AT_MOST_ONE, CORRELATION, POSITIVE, SHARE
from tfcomp.statistics.metric import computes

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis

# The regressors of `tfcomp.analysis.sharing`, and subsets of OOD points.
MEMORIES = {
    "sharing": "ID outputs that share a factor",
    "rival": "as many ID outputs that share none and are far",
    "single": "ID outputs that share one factor alone",
}
PLACES = {
    "far": f"at least {FAR:g} grid steps from ID",
    "near": f"less than {FAR:g} grid steps from ID",
}
SUBSETS = {"id": "ID", "ood": "OOD"}
PEAKS = {"multiple_peaks": "several peaks", "no_peak": "no peak"}
KERNELS = {
    "factorized": "binary factorized",
    "conjunctive": "conjunctive",
    "constant": "constant",
    "factorized_smooth": "factorized, of the width of a bump,",
    "radial": "radial, of the width of a bump,",
    "additive_best": "best additive",
    "radial_best": "best radial",
}
ORDERS = {
    "anova_first": "terms of the first factor",
    "anova_second": "terms of the second factor",
    "anova_single": "terms of one factor",
    "anova_pairwise": "terms of two factors",
    "anova_higher": "terms of more factors",
    "factorization_ratio": "all terms of one factor",
}
_PAIR = "on the two images at the edges of the gap"
# By metric: the number of `summarize_interpolation`, and its description.
EDGES = {
    "edge_r2": ("interpolation_r2", "mean over", _PAIR),
    "edge_r2_min": ("interpolation_r2_min", "least over", _PAIR),
    "edge_linear_r2": ("linear_r2", "mean over", f"{_PAIR}, linear weights"),
    "edge_truth_r2": ("truth_r2", "mean over", f"{_PAIR}, of the true image"),
}
Numbers = dict[str, float | None]
Lists = dict[str, list[float | None]]


@computes(
    "run",
    CORRELATION,
    border_rank_correlation="rank correlation of OOD error and distance to ID: "
    "Spearman's, over OOD points, of the relative error and the distance to "
    "the nearest ID grid point",
)
@computes(
    "run",
    POSITIVE,
    better="low",
    border_relative_mse="relative MSE by distance to ID: mean relative error "
    "at a distance of 1, 2, ... grid steps (a list)",
)
def compute_border(analysis: RunAnalysis) -> dict[str, Any]:
    """Relates the OOD error to the distance to ID (section 3.2)."""
    if not analysis.splits.is_ood.any():
        return {}
    error, distance = analysis.error_ratio, analysis.border_distance
    if np.isinf(distance).all():
        return {}  # too many combinations to count steps
    steps = np.unique(distance[np.isfinite(distance) & (distance > 0)])
    return {
        "border_rank_correlation": correlate_with_distance(error, distance),
        "border_relative_mse": [
            float(error[distance == step].mean()) for step in steps
        ],
    }


@computes(
    "run",
    AT_MOST_ONE,
    {
        f"{key}_{where}_r2": f"R² on {text} ({where}): mean over OOD points "
        f"{place} of the R², about the mean of the output, on {text}"
        for where, place in PLACES.items()
        for key, text in MEMORIES.items()
    },
)
@computes(
    "run",
    SHARE,
    {
        f"faint_{where}_share": f"share of faint OOD outputs, {where}: share "
        f"of OOD outputs {place} with less than a tenth of the length of the "
        "median ID output, which no R² counts"
        for where, place in PLACES.items()
    },
    better="low",
)
@computes(
    "run",
    AT_MOST_ONE,
    sharing_truth_r2="R² of the truth on images that share a factor: the same "
    "R² of the true OOD images: where it is high, data are sums, and a network "
    "that composes them well has a high sharing_far_r2",
)
def compute_sharing(analysis: RunAnalysis) -> Numbers:
    """Explains OOD outputs by memories that share a factor (figure 1d)."""
    if not analysis.has_hole:
        return {}
    splits, outputs = analysis.splits, analysis.bright_outputs
    r2 = sharing.compute_sharing(
        splits.grid, outputs, splits.is_ood, analysis.dataset.space
    )
    faint = sharing.find_faint(outputs, splits.is_ood)
    distance = analysis.superposition.distance
    scores = sharing.summarize_sharing(r2, distance, faint)
    return scores | {"sharing_truth_r2": analysis.truth_sharing}


@computes(
    "run",
    SHARE,
    {
        f"{name}_{key}": f"share of {text} images with {words}: share of {text}"
        f" images with {words}: local extrema above half of the largest value "
        "of the image and above a tenth of the height of a bump"
        for name, words in PEAKS.items()
        for key, text in SUBSETS.items()
    },
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
        is_known = mean_or_none(peaks) is not None
        tests = {"multiple_peaks": peaks > 1, "no_peak": peaks == 0}
        for kind, holds in tests.items():
            share = float(holds.mean()) if is_known else None
            numbers[f"{kind}_{name}"] = share
    return numbers


@computes(
    "run",
    SHARE,
    {
        f"interaction_r2_{key}": f"R² of the interaction part, {text} images: "
        "R² of what is left of the output less its row and column means on "
        f"that of the truth, one scale for all {text} images; a plus has 0"
        for key, text in SUBSETS.items()
    },
    better="high",
)
def compute_image_interaction(analysis: RunAnalysis) -> Numbers:
    """Tests whether images are sums over rows and columns (section 4.2)."""
    if not analysis.dataset.has_position:
        return {}
    images, truth = analysis.evaluation.images, analysis.evaluation.truth
    return {
        f"interaction_r2_{name}": compute_interaction_r2(
            images[rows], truth[rows]
        )
        for name, rows in analysis.subsets.items()
    }


@computes(
    "run",
    CORRELATION,
    {
        f"alignment_{key}": f"alignment with the {text} kernel: centered "
        f"alignment of the cosines of OOD outputs with the {text} kernel"
        for key, text in KERNELS.items()
    },
)
@computes(
    "run",
    POSITIVE,
    {
        f"alignment_{key}_width": f"width of the best {key} kernel: the width "
        f"at which alignment_{key}_best is reached"
        for key in ("additive", "radial")
    },
    unit="factor",
)
@computes(
    "run",
    SHARE,
    {
        name: f"kernel, {text}: share of {text} in the variance of the kernel"
        for name, text in ORDERS.items()
    },
)
def compute_alignment(analysis: RunAnalysis) -> Numbers:
    """Compares outputs with ideal kernels (figure 1e, equations 3, 4)."""
    if not analysis.has_hole:
        return {}
    gram, splits = compute_cosine_gram(analysis.bright_outputs), analysis.splits
    numbers = analysis.align(gram)
    if analysis.is_plane:
        numbers |= summarize_best_alignment(gram, splits.grid, splits.is_ood)
    elif splits.is_complete:
        numbers |= summarize_anova(gram, splits.grid)
    return numbers


@computes(
    "run",
    SHARE,
    {
        name: f"R² {text}, {over.split()[0]}: R² {text}, {over} the held-out "
        "points of a gap"
        for name, (_, over, text) in EDGES.items()
    },
)
def compute_interpolation(analysis: RunAnalysis) -> Numbers:
    """Explains outputs in a gap by the images at its edges (figure 9a-d).

    R^2 is about zero in pixel space, and averaged over the curves with a gap. A
    network that rotates has the R^2 of the true images.
    """
    if not analysis.gaps:
        return {}
    scores = [analysis.score_gap(curve) for curve in analysis.gaps]
    summaries = [summarize_interpolation(score) for score in scores]
    return {
        name: average(summary[key] for summary in summaries)
        for name, (key, *_) in EDGES.items()
    }


@computes("run", curve_values="factor: values along the curve (a list)")
@computes(
    "run",
    POSITIVE,
    better="low",
    curve_mse="MSE along the curve with a gap: MSE over pixels at each of "
    "curve_values (a list)",
)
def compute_error_curve(analysis: RunAnalysis) -> Lists:
    """Lists the error along the one curve with a gap (figure 9a)."""
    if len(analysis.gaps) != 1:
        return {}
    (curve,) = analysis.gaps
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": analysis.error[curve.rows].tolist(),
    }


def average(values: Iterable[float | None]) -> float | None:
    """Returns the mean; None if one of the values does not exist."""
    return mean_or_none(np.array(list(values), float))
