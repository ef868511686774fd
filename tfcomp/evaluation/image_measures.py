"""Measures of what a model draws: errors, peaks, memories, kernels, gaps.

A function maps a study to numbers by name, or to nothing where it does not
apply; see `measures`. It declares them here, which needs no TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis.border import correlate_with_distance
from tfcomp.analysis.finite import mean_or_none
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.image_interaction import compute_interaction_r2
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.analysis.kernel_anova import summarize_anova
from tfcomp.analysis.kernels import summarize_best_alignment
from tfcomp.analysis.scores import count_finite_peaks
from tfcomp.analysis.sharing import (
    compute_sharing,
    find_faint,
    summarize_sharing,
)
from tfcomp.analysis.superposition import FAR
from tfcomp.evaluation.gaps import list_gaps, score_gap
from tfcomp.statistics.limits import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    REAL,
    SHARE,
)
from tfcomp.statistics.measure import Measure, declare

if TYPE_CHECKING:
    from tfcomp.evaluation.study import Study

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
EDGES = "on the two images at the edges of the gap"
Numbers = dict[str, float | None]
Lists = dict[str, list[float | None]]


@declare(
    Measure(
        "border_rank_correlation",
        "rank correlation of OOD error and distance to ID",
        CORRELATION,
        "Spearman's, over OOD points, of the relative error and the distance "
        "to the nearest ID grid point",
    ),
    Measure(
        "border_relative_mse",
        "relative MSE by distance to ID",
        POSITIVE,
        "mean relative error at a distance of 1, 2, ... grid steps (a list)",
        better="low",
    ),
    of="study",
)
def measure_border(study: Study) -> Numbers | Lists:
    """Does the OOD error rise with the distance to ID? (section 3.2)

    `border_rank_correlation`: Spearman's, over OOD points, of the relative
    error and the distance to the nearest ID grid point. A list,
    `border_relative_mse`: mean error at a distance of 1, 2, ... grid steps.
    """
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


@declare(
    *(
        Measure(
            f"{name}_{where}_r2",
            f"R² on {text} ({where})",
            AT_MOST_ONE,
            f"mean over OOD points {place} of the R², about the mean of the "
            f"output, on {text}",
        )
        for where, place in PLACES.items()
        for name, text in MEMORIES.items()
    ),
    *(
        Measure(
            f"faint_{where}_share",
            f"share of faint OOD outputs, {where}",
            SHARE,
            f"share of OOD outputs {place} with less than a tenth of the "
            "length of the median ID output, which no R² counts",
            better="low",
        )
        for where, place in PLACES.items()
    ),
    Measure(
        "sharing_truth_r2",
        "R² of the truth on images that share a factor",
        AT_MOST_ONE,
        "the same R² of the true OOD images: where it is high, data are sums, "
        "and a network that composes them well has a high sharing_far_r2",
    ),
    of="study",
)
def measure_sharing(study: Study) -> Numbers:
    """Are OOD outputs made of memories that share a factor? (figure 1d)

    `sharing_far_r2`, `rival_far_r2` and `single_far_r2`: mean R^2 about the
    mean of OOD outputs at least `FAR` grid steps from ID, on what
    `tfcomp.analysis.sharing` names so. `sharing_near_r2`, and so on: of the
    other OOD points. `faint_far_share`, `faint_near_share`: of outputs that
    are too faint to count. `sharing_truth_r2`: of the true images, at a sample
    of the points. Where it is high, `sharing_far_r2` says nothing.
    """
    if not study.has_hole:
        return {}
    splits, space = study.splits, study.dataset.space
    r2 = compute_sharing(
        splits.grid, study.bright_outputs, splits.is_ood, space
    )
    faint = find_faint(study.bright_outputs, splits.is_ood)
    distance = study.superposition.distance
    return {
        **summarize_sharing(r2, distance, faint),
        "sharing_truth_r2": study.truth_sharing,
    }


@declare(
    *(
        Measure(
            f"{name}_{subset}",
            f"share of {subset.upper()} images with {text}",
            SHARE,
            f"share of {subset.upper()} images with {text}: local extrema "
            "above half of the largest value of the image and above a tenth of "
            "the height of a bump",
        )
        for name, text in PEAKS.items()
        for subset in ("id", "ood")
    ),
    of="study",
)
def measure_peaks(study: Study) -> Numbers:
    """How many images show several bumps? (section 3.2)

    `multiple_peaks_id`, `multiple_peaks_ood`: share of images with two peaks
    or more, by the measure of each image itself, none of them fainter than a
    tenth of a bump; `no_peak_id`, `no_peak_ood`: of those without any.
    """
    if not study.dataset.has_position:
        return {}
    images, splits = study.evaluation.images, study.splits
    counts = count_finite_peaks(images, study.dataset.polarity)
    subsets = {"id": counts[splits.is_id], "ood": counts[splits.is_ood]}
    numbers: Numbers = {}
    for name, found in subsets.items():
        known = mean_or_none(found) is not None
        numbers[f"multiple_peaks_{name}"] = (
            float(np.mean(found > 1)) if known else None
        )
        numbers[f"no_peak_{name}"] = (
            float(np.mean(found == 0)) if known else None
        )
    return numbers


@declare(
    *(
        Measure(
            f"interaction_r2_{subset}",
            f"R² of the interaction part, {subset.upper()} images",
            SHARE,
            "R² of what is left of the output less its row and column means on "
            f"that of the truth, one scale for all {subset.upper()} images; a "
            "plus has 0",
            better="high",
        )
        for subset in ("id", "ood")
    ),
    of="study",
)
def measure_image_interaction(study: Study) -> Numbers:
    """Do images show more than a sum over rows and columns? (section 4.2)

    `interaction_r2_id` and `interaction_r2_ood`; see
    `tfcomp.analysis.image_interaction`.
    """
    if not study.dataset.has_position:
        return {}
    images, truth = study.evaluation.images, study.evaluation.truth
    subsets = {"id": study.splits.is_id, "ood": study.splits.is_ood}
    return {
        f"interaction_r2_{name}": compute_interaction_r2(
            images[rows], truth[rows]
        )
        for name, rows in subsets.items()
    }


@declare(
    *(
        Measure(
            f"alignment_{name}",
            f"alignment with the {text} kernel",
            CORRELATION,
            f"centered alignment of the cosines of OOD outputs with the {text} "
            "kernel",
        )
        for name, text in KERNELS.items()
    ),
    *(
        Measure(
            f"alignment_{name}_width",
            f"width of the best {name} kernel",
            POSITIVE,
            f"the width at which alignment_{name}_best is reached",
            unit="factor",
        )
        for name in ("additive", "radial")
    ),
    *(
        Measure(
            name,
            f"kernel, {text}",
            SHARE,
            f"share of {text} in the variance of the kernel",
        )
        for name, text in ORDERS.items()
    ),
    of="study",
)
def measure_alignment(study: Study) -> Numbers:
    """Which ideal kernel has the model learned? (figure 1e, equations 3, 4)

    The numbers of `Study.align` for the cosines of all pairs of outputs, and
    over two ordered factors those of `summarize_best_alignment`, with kernels
    of any width. Of other grids the shares of orders, of `summarize_anova`.
    """
    if not study.has_hole:
        return {}
    gram = compute_cosine_gram(study.bright_outputs)
    points = (study.splits.grid, study.splits.is_ood)
    numbers = study.align(gram)
    if study.is_plane:
        numbers |= summarize_best_alignment(gram, *points)
    elif study.splits.is_complete:
        numbers |= summarize_anova(gram, study.splits.grid)
    return numbers


@declare(
    *(
        Measure(
            name,
            f"R² {text}, {over.split()[0]}",
            SHARE,
            f"R² {text}, {over} the held-out points of a gap",
        )
        for name, over, text in (
            ("edge_r2", "mean over", EDGES),
            ("edge_r2_min", "least over", EDGES),
            ("edge_linear_r2", "mean over", f"{EDGES}, linear weights"),
            ("edge_truth_r2", "mean over", f"{EDGES}, of the true image"),
        )
    ),
    of="study",
)
def measure_interpolation(study: Study) -> Numbers:
    """Are outputs in the gap made of the images at its edges? (figure 9a-d)

    R^2 about zero in pixel space, over the angles of the gap: `edge_r2` (mean)
    and `edge_r2_min` of the output on the two true edge images with the best
    weights, `edge_linear_r2` with those of the linear interpolation,
    `edge_truth_r2` of the true image, which a network that rotates would
    score. Means over the curves with a gap, of which a rotated "4" among
    other digits has one.
    """
    gaps = list_gaps(study)
    if not gaps:
        return {}
    found = [summarize_interpolation(score_gap(study, c)) for c in gaps]
    names = {
        "edge_r2": "interpolation_r2",
        "edge_r2_min": "interpolation_r2_min",
        "edge_linear_r2": "linear_r2",
        "edge_truth_r2": "truth_r2",
    }
    return {
        name: average(summary[key] for summary in found)
        for name, key in names.items()
    }


@declare(
    Measure("curve_values", "factor", REAL, "values along the curve (a list)"),
    Measure(
        "curve_mse",
        "MSE along the curve with a gap",
        POSITIVE,
        "MSE over pixels at each of curve_values (a list)",
        better="low",
    ),
    of="study",
)
def measure_error_curve(study: Study) -> Lists:
    """MSE over pixels along the one curve with a gap (figure 9a).

    `curve_values`: of the factor; `curve_mse`: at each of them.
    """
    gaps = list_gaps(study)
    if len(gaps) != 1:
        return {}
    (curve,) = gaps
    return {
        "curve_values": curve.factor.values().tolist(),
        "curve_mse": study.error[curve.rows].tolist(),
    }


def average(values: Iterable[float | None]) -> float | None:
    """The mean; None, as NaN, if one of them does not exist."""
    return mean_or_none(np.array(list(values), float))
