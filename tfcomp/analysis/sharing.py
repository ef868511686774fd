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

R^2 = 1 - SSE / SST in brightness, SST about the mean over the pixels of the
output, with no intercept among the regressors: a haze earns nothing, and an
even gray of 5 % on a perfect superposition costs more than all of R^2. So there
is a *centered* form with a free constant, which every gray leaves as it is: the
output and the memories less their own means over pixels. A network superposes
if `sharing` explains its outputs and neither `rival` nor `single`
does: a copy of the one nearest memory shares a factor, too. But where the truth
is itself a sum of images that share a factor, as of several objects, a perfect
network has .80; and ghosts of .002 of a bump have 1, so none is counted.
"""

import functools

import numpy as np
import scipy

from tfcomp.analysis import superposition
from tfcomp.analysis.features import mean_or_none, single_threaded
from tfcomp.analysis.gram import flatten_outputs
from tfcomp.analysis.kernels import compute_offsets, convert_to_steps
from tfcomp.analysis.spans import normalize_outputs
from tfcomp.datasets.factors import FactorSpace

SETS = ("sharing", "rival", "single")
# In grid steps: the rival's memories differ by more in each factor.
CLEAR = 3.0
# Length up to which an output is too faint, relative to the median ID output.
FAINT = 0.1
# Share of its energy up to which the contrast of an output is rounding.
EVEN = 1e-12


@single_threaded
def compute_sharing(
    factors: np.ndarray,
    outputs: np.ndarray,
    is_ood: np.ndarray,
    space: FactorSpace | None = None,
    centered: bool = False,
) -> dict[str, np.ndarray]:
    """Returns R^2 of every OOD output on each of `SETS`, at most 1, [n_ood].

    If `centered`, the fit has a free constant.

    Outputs [n, ...] are bright, factor values [n, F] on a grid; points of
    different classes are clear of each other. NaN where the output is faint or
    the same in all pixels, an output in use is not finite, no ID point shares a
    value, or a point was not chosen (see `superposition`).
    """
    is_ood = np.asarray(is_ood, bool)
    flat = flatten_outputs(outputs)
    known, unseen = flat[~is_ood], flat[is_ood]
    explain = functools.partial(_explain, centered=centered)
    points = convert_to_steps(factors, space)
    least = [0.0 if f.categorical else CLEAR for f in space or ()] or CLEAR
    r2 = {name: np.full(len(unseen), np.nan) for name in SETS}
    scored = superposition.choose_scored(len(unseen), points.shape[1])
    scored &= ~superposition.find_blank(unseen, known, FAINT)
    for i in np.flatnonzero(scored):
        target, point = unseen[i], points[is_ood][i]
        offsets = compute_offsets(points[~is_ood], point, space)
        shares = offsets == 0
        if not shares.any():
            continue
        distances = np.linalg.norm(offsets, axis=1).round(6)
        sharing = superposition.choose_memories(shares, distances)
        clear = np.flatnonzero((offsets > least).all(axis=1))
        order = np.argsort(distances[clear], kind="stable")
        single = [
            superposition.choose_memories(mask[:, None], distances)
            for mask in shares.T
            if mask.any()
        ]
        r2["sharing"][i] = explain(target, known[sharing])
        r2["rival"][i] = explain(target, known[clear[order[: len(sharing)]]])
        r2["single"][i] = max(explain(target, known[rows]) for rows in single)
    return r2


def find_faint(outputs: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Returns which OOD outputs are too faint to be scored, [n_ood]."""
    flat, is_ood = flatten_outputs(outputs), np.asarray(is_ood, bool)
    return superposition.find_blank(flat[is_ood], flat[~is_ood], FAINT)


def summarize_sharing(
    r2: dict[str, np.ndarray],
    distance: np.ndarray,
    is_faint: np.ndarray | None = None,
) -> dict[str, float | None]:
    """Averages over OOD points at least `FAR` grid steps from ID, and others.

    Returns `<set>_far_r2` and `<set>_near_r2`, None where there is nothing to
    average; `faint_far_share` and `faint_near_share` by `find_faint`.
    """
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


def _explain(target: np.ndarray, memories: np.ndarray, centered: bool) -> float:
    """Returns R^2 about the mean of the target, with nonnegative weights."""
    energy = np.sum(target**2)
    spread = np.sum((target - target.mean()) ** 2)
    is_finite = np.isfinite(energy) and np.isfinite(memories).all()
    if not is_finite or spread <= EVEN * energy:
        return float("nan")
    if centered:
        target, memories = target - target.mean(), _center(memories)
    error = np.linalg.norm(target) / np.sqrt(energy)
    if len(memories):  # without any, SciPy would abort the process
        unit = target / np.sqrt(energy)
        error = scipy.optimize.nnls(normalize_outputs(memories).T, unit)[1]
    return float(1 - error**2 * energy / spread)


def _center(memories: np.ndarray) -> np.ndarray:
    """Subtracts means over pixels [k, pixels]; even memories become zero."""
    centered = memories - memories.mean(axis=1, keepdims=True)
    spread = np.sum(centered**2, axis=1, keepdims=True)
    energy = np.sum(memories**2, axis=1, keepdims=True)
    return np.where(spread > EVEN * energy, centered, 0.0)
