"""Measures of the drawn images: border, superposition, kernel (C3 to C5).

Each function takes a study and returns its numbers by name; none where they
have no meaning (a run without a map over two factors, or without a region).
"""

from __future__ import annotations

import numpy as np

from tfcomp.analysis.border import correlate_with_distance
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.kernels import summarize_alignment
from tfcomp.analysis.superposition import FAR
from tfcomp.analysis.superposition import PREDICTORS
from tfcomp.analysis.superposition import summarize_superposition
from tfcomp.evaluation.evaluator import compute_relative_error
from tfcomp.evaluation.study import Study

Numbers = dict[str, float | None]
Lists = dict[str, list[float | None]]


def measure_border(study: Study) -> Numbers | Lists:
    """Does the OOD error rise with the distance to ID? (section 3.2)

    `border_rank_correlation`: Spearman, over OOD points, of the relative
    error and the distance to the nearest ID grid point. A list,
    `border_relative_mse`: mean error at a distance of 1, 2, ... grid steps.
    """
    if not study.splits.is_ood.any():
        return {}
    error = compute_relative_error(study.dataset, study.evaluation)
    distance = study.border_distance
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
    if not _has_hole(study):
        return {}
    numbers: Numbers = {}
    for infix, distance in (("", 0.0), ("far_", FAR)):
        summary = summarize_superposition(study.superposition, distance)
        for name in PREDICTORS:
            numbers[f"{name}_{infix}r2"] = summary[f"{name}_r2"]
    return numbers


def measure_alignment(study: Study) -> Numbers:
    """Which ideal kernel has the model learned? (figure 1e, equations 3, 4)

    Centred alignments, in [-1, 1], of the cosines of all pairs of OOD outputs
    with ideal kernels: `alignment_factorized` (half for sharing x, half for
    sharing y), `alignment_conjunctive` (sharing both) and
    `alignment_constant`, which is 0 by definition, since nothing is left of a
    constant kernel once it is centred: to exceed it is to be positive. With
    the overlap of two bumps for each delta: `alignment_factorized_smooth`,
    and `alignment_radial`, the conjunctive one, which then is a Gaussian of
    the distance alone.
    """
    if not _has_hole(study):
        return {}
    gram = compute_cosine_gram(study.bright_outputs)
    points = (gram, study.splits.grid, study.splits.is_ood)
    numbers: Numbers = dict(summarize_alignment(*points))
    smooth = summarize_alignment(*points, width=study.run.config.data.sigma)
    numbers["alignment_factorized_smooth"] = smooth["alignment_factorized"]
    numbers["alignment_radial"] = smooth["alignment_conjunctive"]
    return numbers


def _has_hole(study: Study) -> bool:
    return study.has_map and bool(study.splits.is_ood.any())
