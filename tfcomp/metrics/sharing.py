"""Tests whether OOD outputs are made of memories that share a factor.

This is the test of section 3.3 and figure 1d that superposers of few memories
pass, too, unlike the test of `superposition`. Every OOD output is fitted by
least squares with nonnegative weights on three sets of ID outputs:

    sharing   all that share x or y
    rival     as many, the nearest ones that differ by more than `CLEAR` grid
              steps in every factor, so that no bump of theirs reaches a bump
              at the point
    single    those that share x alone or those that share y alone, whichever
              explains more

R^2 = 1 - SSE / SST about the mean over the pixels of the output, with no
intercept among the regressors: a haze earns nothing, but 5 % of gray costs
more than all of R^2. So there is a *centered* form with a free constant. A
network superposes if `sharing` explains its outputs and neither `rival` nor
`single` does. But where the truth is itself a sum of images that share a
factor, a perfect network has .80.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics import superposition
from tfcomp.metrics.distances import compute_offsets
from tfcomp.metrics.features import Scores, mean_or_none, single_threaded
from tfcomp.metrics.kernels import flatten_outputs
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

SETS = ("sharing", "rival", "single")
# In grid steps: the rival's memories differ by more in each factor.
CLEAR = 3.0
# Length up to which an output is too faint, relative to the median ID output.
FAINT = 0.1
# Share of its energy up to which the contrast of an output is rounding.
EVEN = 1e-12


@single_threaded
def compute_sharing(
    factors: Array,
    outputs: Array,
    is_ood: Array,
    space: FactorSpace,
    centered: bool = False,
) -> dict[str, Array]:
    """Returns R^2 of every OOD output on each of `SETS`, at most 1, [n_ood]."""
    # NaN of faint, even, not finite and not chosen outputs, and if none shares.
    is_ood = np.asarray(is_ood, bool)
    flat, index = flatten_outputs(outputs), space.to_index(factors)
    known, unseen = flat[~is_ood], flat[is_ood]
    least = [0.0 if factor.categorical else CLEAR for factor in space]
    r2 = {name: np.full(len(unseen), np.nan) for name in SETS}
    scored = superposition.choose_scored(len(unseen), len(space))
    scored &= ~superposition.find_blank(unseen, known, FAINT)
    for i in np.flatnonzero(scored):
        offsets = compute_offsets(index[~is_ood], index[is_ood][i], space)
        shares = offsets == 0
        if not shares.any():
            continue
        distances = np.linalg.norm(offsets, axis=1).round(6)
        sharing = superposition.choose_memories(shares, distances)
        clear = np.flatnonzero((offsets > least).all(axis=1))
        nearest = np.argsort(distances[clear], kind="stable")[: len(sharing)]
        sets = [sharing, clear[nearest]] + [
            superposition.choose_memories(mask[:, None], distances)
            for mask in shares.T
            if mask.any()
        ]
        found = [_explain(unseen[i], known[rows], centered) for rows in sets]
        r2["sharing"][i], r2["single"][i] = found[0], max(found[2:])
        if len(nearest) == len(sharing):  # a small grid has not as many
            r2["rival"][i] = found[1]
    return r2


def find_faint(outputs: Array, is_ood: Array) -> Array:
    """Returns which OOD outputs are too faint to be scored, [n_ood]."""
    flat, is_ood = flatten_outputs(outputs), np.asarray(is_ood, bool)
    return superposition.find_blank(flat[is_ood], flat[~is_ood], FAINT)


def summarize_sharing(
    r2: dict[str, Array], distance: Array, is_faint: Array | None = None
) -> Scores:
    """Returns `<set>_far_r2`, from `FAR` grid steps on, and `<set>_near_r2`."""
    is_far = distance >= superposition.FAR
    places = {"far": is_far, "near": ~is_far}
    numbers = {
        f"{name}_{where}_r2": mean_or_none(scores[rows & np.isfinite(scores)])
        for where, rows in places.items()
        for name, scores in r2.items()
    }
    if is_faint is not None:
        for where, rows in places.items():
            numbers[f"faint_{where}_share"] = mean_or_none(is_faint[rows])
    return numbers


def _explain(target: Array, memories: Array, centered: bool) -> float:
    """Returns R^2 about the target's mean, with nonnegative weights."""
    shifted = target - target.mean()
    energy, spread = np.sum(target**2), np.sum(shifted**2)
    if not np.isfinite(energy) or spread <= EVEN * energy:
        return float("nan")
    if centered:
        contrast = memories - memories.mean(axis=1, keepdims=True)
        spreads, energies = ((m**2).sum(axis=1) for m in (contrast, memories))
        contrast[spreads <= EVEN * energies] = 0.0  # even memories
        return superposition.make_span(contrast)(shifted)
    share = superposition.make_span(memories)(target)
    return float(1 - (1 - share) * energy / spread)


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
def measure_sharing(analysis: RunAnalysis) -> Scores:
    """Explains OOD outputs by memories that share a factor (figure 1d)."""
    if not analysis.has_hole:
        return {}
    splits, outputs = analysis.splits, analysis.bright_outputs
    points = splits.grid, outputs, splits.is_ood, analysis.dataset.space
    distance = analysis.superposition.distance
    faint = find_faint(outputs, splits.is_ood)
    r2 = compute_sharing(*points)
    scores = summarize_sharing(r2, distance, faint)
    r2 = compute_sharing(*points, centered=True)
    centered = summarize_sharing(r2, distance)
    scores |= {f"{name}_centered": value for name, value in centered.items()}
    return scores | {"sharing_truth_r2": analysis.truth_sharing}
