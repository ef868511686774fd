"""Measures of what a model draws: see `measures`. Needs no TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis import sharing
from tfcomp.analysis.border import correlate_with_distance
from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.analysis.kernel_anova import compute_interaction_r2, summarize_anova
from tfcomp.analysis.kernels import summarize_best_alignment
from tfcomp.analysis.scores import count_finite_peaks
from tfcomp.analysis.superposition import FAR
from tfcomp.statistics.limits import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    SHARE,
)
from tfcomp.statistics.metric import Metric, computes

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis

# What `tfcomp.analysis.sharing` combines, and at which OOD points.
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
# From which number of a curve, over its held-out points, and what it is.
EDGES = {
    "edge_r2": ("interpolation_r2", "mean over", _PAIR),
    "edge_r2_min": ("interpolation_r2_min", "least over", _PAIR),
    "edge_linear_r2": ("linear_r2", "mean over", f"{_PAIR}, linear weights"),
    "edge_truth_r2": ("truth_r2", "mean over", f"{_PAIR}, of the true image"),
}
Numbers = dict[str, float | None]
Lists = dict[str, list[float | None]]


@computes(
    Metric(
        "border_rank_correlation",
        "rank correlation of OOD error and distance to ID",
        "Spearman's, over OOD points, of the relative error and the "
        "distance to the nearest ID grid point",
        limits=CORRELATION,
    ),
    Metric(
        "border_relative_mse",
        "relative MSE by distance to ID",
        "mean relative error at a distance of 1, 2, ... grid steps (a list)",
        limits=POSITIVE,
        better="low",
    ),
    of="run",
)
def measure_border(study: RunAnalysis) -> Numbers | Lists:
    """Does the OOD error rise with the distance to ID? (section 3.2)"""
    if not study.splits.is_ood.any():
        return {}
    error, distance = study.error_ratio, study.border_distance
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
    *(
        Metric(
            f"{key}_{where}_r2",
            f"R² on {text} ({where})",
            f"mean over OOD points {place} of the R², about the mean "
            f"of the output, on {text}",
            limits=AT_MOST_ONE,
        )
        for where, place in PLACES.items()
        for key, text in MEMORIES.items()
    ),
    *(
        Metric(
            f"faint_{key}_share",
            f"share of faint OOD outputs, {key}",
            f"share of OOD outputs {text} with less than a tenth of the "
            "length of the median ID output, which no R² counts",
            limits=SHARE,
            better="low",
        )
        for key, text in PLACES.items()
    ),
    Metric(
        "sharing_truth_r2",
        "R² of the truth on images that share a factor",
        "the same R² of the true OOD images: where it is high, data "
        "are sums, and a network that composes them well has a high "
        "sharing_far_r2",
        limits=AT_MOST_ONE,
    ),
    of="run",
)
def measure_sharing(study: RunAnalysis) -> Numbers:
    """Are OOD outputs made of memories that share a factor? (figure 1d)"""
    if not study.has_hole:
        return {}
    splits, outputs = study.splits, study.bright_outputs
    r2 = sharing.compute_sharing(
        splits.grid, outputs, splits.is_ood, study.dataset.space
    )
    faint = sharing.find_faint(outputs, splits.is_ood)
    distance = study.superposition.distance
    found = sharing.summarize_sharing(r2, distance, faint)
    return found | {"sharing_truth_r2": study.truth_sharing}


@computes(
    *(
        Metric(
            f"{name}_{key}",
            f"share of {text} images with {words}",
            f"share of {text} images with {words}: local extrema above "
            "half of the largest value of the image and above a tenth of "
            "the height of a bump",
            limits=SHARE,
        )
        for name, words in PEAKS.items()
        for key, text in SUBSETS.items()
    ),
    of="run",
)
def measure_peaks(study: RunAnalysis) -> Numbers:
    """How many images show several bumps, or none? (section 3.2)"""
    if not study.dataset.has_position:
        return {}
    images, splits = study.evaluation.images, study.splits
    counts = count_finite_peaks(images, study.dataset.polarity)
    numbers: Numbers = {}
    for name, rows in (("id", splits.is_id), ("ood", splits.is_ood)):
        found = counts[rows]
        is_known = mean_or_none(found) is not None
        tests = {"multiple_peaks": found > 1, "no_peak": found == 0}
        for kind, shown in tests.items():
            share = float(shown.mean()) if is_known else None
            numbers[f"{kind}_{name}"] = share
    return numbers


@computes(
    *(
        Metric(
            f"interaction_r2_{key}",
            f"R² of the interaction part, {text} images",
            "R² of what is left of the output less its row and column means "
            f"on that of the truth, one scale for all {text} images; a plus "
            "has 0",
            limits=SHARE,
            better="high",
        )
        for key, text in SUBSETS.items()
    ),
    of="run",
)
def measure_image_interaction(study: RunAnalysis) -> Numbers:
    """Do images show more than a sum over rows and columns? (section 4.2)"""
    if not study.dataset.has_position:
        return {}
    found, splits, numbers = study.evaluation, study.splits, {}
    for name, rows in (("id", splits.is_id), ("ood", splits.is_ood)):
        r2 = compute_interaction_r2(found.images[rows], found.truth[rows])
        numbers[f"interaction_r2_{name}"] = r2
    return numbers


@computes(
    *(
        Metric(
            f"alignment_{key}",
            f"alignment with the {text} kernel",
            "centered alignment of the cosines of OOD outputs with the "
            f"{text} kernel",
            limits=CORRELATION,
        )
        for key, text in KERNELS.items()
    ),
    *(
        Metric(
            f"alignment_{key}_width",
            f"width of the best {key} kernel",
            f"the width at which alignment_{key}_best is reached",
            limits=POSITIVE,
            unit="factor",
        )
        for key in ("additive", "radial")
    ),
    *(
        Metric(
            f"{key}",
            f"kernel, {text}",
            f"share of {text} in the variance of the kernel",
            limits=SHARE,
        )
        for key, text in ORDERS.items()
    ),
    of="run",
)
def measure_alignment(study: RunAnalysis) -> Numbers:
    """Which ideal kernel has the model learned? (figure 1e, equations 3, 4)"""
    if not study.has_hole:
        return {}
    gram, splits = compute_cosine_gram(study.bright_outputs), study.splits
    numbers = study.align(gram)
    if study.is_plane:
        numbers |= summarize_best_alignment(gram, splits.grid, splits.is_ood)
    elif splits.is_complete:
        numbers |= summarize_anova(gram, splits.grid)
    return numbers


@computes(
    *(
        Metric(
            name,
            f"R² {text}, {over.split()[0]}",
            f"R² {text}, {over} the held-out points of a gap",
            limits=SHARE,
        )
        for name, (_, over, text) in EDGES.items()
    ),
    of="run",
)
def measure_interpolation(study: RunAnalysis) -> Numbers:
    """Are outputs in the gap made of the images at its edges? (figure 9a-d)

    R^2 about zero in pixel space, means over the curves with a gap; that of the
    true images is what a network that rotates would have.
    """
    if not study.gaps:
        return {}
    scores = [study.score_gap(curve) for curve in study.gaps]
    found = [summarize_interpolation(score) for score in scores]
    return {
        name: average(summary[key] for summary in found)
        for name, (key, *_) in EDGES.items()
    }


@computes(
    Metric("curve_values", "factor", "values along the curve (a list)"),
    Metric(
        "curve_mse",
        "MSE along the curve with a gap",
        "MSE over pixels at each of curve_values (a list)",
        limits=POSITIVE,
        better="low",
    ),
    of="run",
)
def measure_error_curve(study: RunAnalysis) -> Lists:
    """The error along the one curve with a gap (figure 9a)."""
    if len(study.gaps) != 1:
        return {}
    (curve,) = study.gaps
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": study.error[curve.rows].tolist(),
    }


def average(values: Iterable[float | None]) -> float | None:
    """The mean; None, as NaN, if one of them does not exist."""
    return mean_or_none(np.array(list(values), float))
