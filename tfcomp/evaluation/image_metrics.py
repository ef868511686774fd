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
from tfcomp.analysis.kernel_anova import (
    compute_interaction_r2,
    compute_interaction_size,
    summarize_anova,
)
from tfcomp.analysis.kernels import summarize_best_alignment
from tfcomp.analysis.schmidt import summarize_centered_schmidt
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.analysis.superposition import FAR
from tfcomp.statistics.limits import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    SHARE,
    Limits,
)
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
FORMS = {
    "": "",
    "_centered": " and a free constant, so that an even gray changes nothing",
}
PRODUCTS = {1: "the best product", 2: "the best sum of two products"}
MAX_KERNEL = 2500  # points whose Schmidt values take a second
PARTS = {"variance": "outputs", "truth_variance": "true images"}
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
        f"{key}_{where}_r2{form}": f"R² on {text} ({where}"
        f"{form.replace('_', ', ')}): mean over OOD points {place} of the R², "
        f"about the mean of the output, on "
        f"{text}{words}"
        for form, words in FORMS.items()
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
    points = splits.grid, outputs, splits.is_ood, analysis.dataset.space
    distance = analysis.superposition.distance
    faint = sharing.find_faint(outputs, splits.is_ood)
    r2 = sharing.compute_sharing(*points)
    scores = sharing.summarize_sharing(r2, distance, faint)
    r2 = sharing.compute_sharing(*points, centered=True)
    centered = sharing.summarize_sharing(r2, distance)
    scores |= {f"{name}_centered": value for name, value in centered.items()}
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
@computes(
    "run",
    POSITIVE,
    {
        f"interaction_amplitude_{key}": f"size of the interaction part, {text} "
        f"images: its norm over that of the true part, over all {text} images; "
        "a plus with a faint bump has R² 1 and an amplitude near 0"
        for key, text in SUBSETS.items()
    },
)
@computes(
    "run",
    SHARE,
    {
        f"interaction_{kind}_{key}": f"interaction part, share of the variance "
        f"of {words}, {text}: share of the interaction part in the variance "
        f"over pixels of {words}; .78 for a bump of sigma 1 on 28 x 28 pixels"
        for kind, words in PARTS.items()
        for key, text in SUBSETS.items()
    },
)
def compute_image_interaction(analysis: RunAnalysis) -> Numbers:
    """Tests whether images are sums over rows and columns (section 4.2)."""
    if not analysis.dataset.has_position:
        return {}
    numbers: Numbers = {}
    for name, rows in analysis.subsets.items():
        images = analysis.evaluation.images[rows]
        truth = analysis.evaluation.truth[rows]
        numbers[f"interaction_r2_{name}"] = compute_interaction_r2(
            images, truth
        )
        for kind, value in compute_interaction_size(images, truth).items():
            numbers[f"interaction_{kind}_{name}"] = value
    return numbers


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
@computes(
    "run",
    Limits(1),
    schmidt_centered_effective_rank="effective rank of the centered kernel: "
    "exponential of the entropy of the squared Schmidt values of the cosines "
    "of outputs, less their means: the number of products of a kernel of x "
    "and one of y that they are a sum of",
)
@computes(
    "run",
    SHARE,
    {
        f"schmidt_centered_explained_{count}": f"centered kernel, {words}: "
        f"share of its squares that {words} of a kernel of x and one of y "
        "explains"
        for count, words in PRODUCTS.items()
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
        if len(gram) <= MAX_KERNEL:
            numbers |= summarize_centered_schmidt(gram, splits.grid)
    elif splits.is_complete:
        numbers |= summarize_anova(gram, splits.grid)
    return numbers


@computes(
    "run",
    AT_MOST_ONE,
    edge_weight_r2="R² of the weights of the two images at the edges: of the "
    "best weights on those of a linear blend, over the held-out points of a "
    "gap; copies of the nearest edge have 0, a linear blend 1",
)
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
    keys = {name: key for name, (key, *_) in EDGES.items()}
    return {
        name: average(summary[key] for summary in summaries)
        for name, key in (keys | {"edge_weight_r2": "weight_r2"}).items()
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
