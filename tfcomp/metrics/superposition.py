"""Tests whether OOD outputs are superpositions of the model's ID outputs.

The paper's claim (section 3.3, fig. 1d): asked for an unseen (x, y), a decoder
adds up its memories of x and of y. Four predictors of the output at an OOD
point, all of them from ID outputs:

    superposition        a mean output per factor, over the ID points that
                         share its value; combined by least squares
    superposition_span   every ID output that shares a value, combined with
                         nonnegative weights
    conjunctive          a mean output per shell of ID points, which all have
                         the same distance in factor space: the nearest shells,
                         one for each factor; combined by least squares
    conjunctive_span     the nearest ID outputs, in the number that
                         superposition_span has, with nonnegative weights

`superposition` is the main score, and `conjunctive` its rival with the same
number of free parameters; the spans are for models that superpose few memories.
Superposers have an R^2 of 1. True composers of the paper's bumps have .014 (.17
in superposition_span, as bumps overlap next to the border).

R^2 = 1 - SSE / SST per point, with SST about zero and no intercept. Outputs
are *bright* (background 0), so R^2 is a squared cosine: 0 for a blank
prediction, and independent of the scale of the output. *Blank* outputs, which
are rounding noise, have no score.

A second test asks for memories that share a factor (figure 1d). Models that
superpose few memories pass it, too. Every OOD output is fitted by least squares
with nonnegative weights on three sets of ID outputs:

    sharing   all that share x or y
    rival     the nearest that differ by more than `CLEAR` grid steps in every
              factor, so that no bump of theirs reaches a bump at the point;
              the same number as in `sharing`
    single    all that share x, or all that share y, whichever set explains more

Here R^2 is *centered*: about the mean over the pixels of the output, with a
free constant, so that an even gray changes nothing. A network superposes if
`sharing` explains its outputs and neither `rival` nor `single` does. But where
the truth is itself a sum of images that share a factor, a perfect network has a
high R^2, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics.features import single_threaded
from tfcomp.metrics.kernels import flatten_outputs
from tfcomp.metrics.references import compute_offsets
from tfcomp.metrics.registry import Arrays, Scores, computes, mean_or_none
from tfcomp.statistics.limits import AT_MOST_ONE, SHARE

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

PREDICTORS = (
    "superposition",
    "superposition_span",
    "conjunctive",
    "conjunctive_span",
)
Explain = Callable[[Array], float]  # from a target [pixels] to R^2
# Distance from ID in grid steps from which an OOD point is far: bumps (of sigma
# 1) at ID points do not reach a bump there.
FAR = 4.0
# If more ID points share a factor, only those that share most factors are used.
MAX_MEMORIES = 256
# If there are more OOD points of three or more factors, only this number, a
# fixed random choice, is scored.
MAX_POINTS = 256
# Length, relative to the median ID output, up to which an output is rounding.
BLANK = 1e-4
# Eigenvalues of inner products up to this share of the largest are rounding.
_RANK = 1e-13
SETS = ("sharing", "rival", "single")
# In grid steps: the rival's memories differ by more in each factor.
CLEAR = 3.0
# Length up to which an output is too faint, relative to the median ID output.
FAINT = 0.1
# Share of its energy up to which the contrast of an output is rounding.
EVEN = 1e-12


@dataclass(frozen=True)
class SuperpositionScores:
    """Scores per OOD point, in the order of the grid points, each [n_ood].

    Attributes:
        r2: R^2 by name of `PREDICTORS`. It is NaN at a point whose output is
            blank or not finite, that shares no factor with an ID point, or that
            is not chosen (see `MAX_POINTS`).
        is_blank: Which outputs are blank.
        distance: Grid steps to the nearest ID point.
    """

    r2: Arrays
    is_blank: Array
    distance: Array


@single_threaded
def compute_superposition(
    factors: Array,
    outputs: Array,
    targets: Sequence[Array],
    is_ood: Array,
    space: FactorSpace,
) -> list[SuperpositionScores]:
    """Scores sets of images at the OOD points by ID outputs (section 3.3).

    Args:
        factors: Values of the factors, on the grid of the space, [n, F].
        outputs: Bright outputs at these points, [n, ...].
        targets: Sets of bright images at the OOD points, [n_ood, pixels] each.
        is_ood: Which points are held out, [n].
        space: The factors.

    Returns:
        Scores of each set of images.
    """
    index = space.to_index(factors)
    id_index = index[~is_ood]
    ood_index = index[is_ood]
    flat = flatten_outputs(outputs)
    id_outputs = flat[~is_ood]
    num_ood = len(ood_index)
    scored = mark_scored(num_ood, len(space))
    distance = np.full(num_ood, np.inf)
    scores = []
    image_sets = []
    for images in targets:
        images = np.asarray(images, np.float64)
        image_sets.append(images)
        is_blank = find_blank(images, id_outputs)
        scores.append(_make_scores(is_blank, distance))

    for i, point in enumerate(ood_index):
        offsets = compute_offsets(id_index, point, space)  # [n_id, F]
        distances = np.linalg.norm(offsets, axis=1)
        distances = distances.round(6)  # equal distances are compared
        distance[i] = distances.min(initial=np.inf)
        shares = offsets == 0
        if not scored[i] or not shares.any():
            continue

        predictors = _make_predictors(id_outputs, shares, distances)
        scored_sets = zip(image_sets, scores, strict=True)
        for images, target_scores in scored_sets:
            if target_scores.is_blank[i]:
                continue
            for name, explain in predictors.items():
                values = target_scores.r2[name]
                values[i] = explain(images[i])
    return scores


def _make_scores(is_blank: Array, distance: Array) -> SuperpositionScores:
    """Makes scores whose R^2 is NaN at every OOD point, to be filled in."""
    r2 = {}
    for name in PREDICTORS:
        r2[name] = np.full(len(distance), np.nan)
    return SuperpositionScores(
        r2=r2,
        is_blank=is_blank,
        distance=distance,
    )


def _make_predictors(
    id_outputs: Array,
    shares: Array,
    distances: Array,
) -> dict[str, Explain]:
    """Makes the functions that explain an output at one OOD point.

    Args:
        id_outputs: ID outputs, [n_id, pixels].
        shares: Which factors they share with the point, [n_id, F].
        distances: Their distances from it in grid steps, [n_id].

    Returns:
        Functions by name of `PREDICTORS`.
    """
    sharing = choose_memories(shares, distances)
    order = np.argsort(distances, kind="stable")
    nearest = order[: len(sharing)]

    means = []
    for mask in shares.T:
        if mask.any():
            mean = id_outputs[mask].mean(axis=0)
            means.append(mean)

    num_factors = shares.shape[1]
    every_distance = np.unique(distances)  # ascending
    shell_means = []
    for distance in every_distance[:num_factors]:
        shell = id_outputs[distances == distance]
        shell_means.append(shell.mean(axis=0))
    regressors = np.stack(means)
    rivals = np.stack(shell_means)
    return {
        "superposition": partial(compute_projection_r2, regressors=regressors),
        "superposition_span": make_span(id_outputs[sharing]),
        "conjunctive": partial(compute_projection_r2, regressors=rivals),
        "conjunctive_span": make_span(id_outputs[nearest]),
    }


def make_span(regressors: Array) -> Explain:
    """Makes a function that explains targets with nonnegative weights.

    Least squares need only inner products. So the k outputs and the target are
    turned into the space that the outputs span, which has at most k dimensions
    where the outputs have a number for every pixel.

    Args:
        regressors: Outputs that are added up, [k, pixels].

    Returns:
        A function from a target [pixels] to R^2 in [0, 1]; NaN if not finite.
    """
    unit = normalize_outputs(regressors)
    if not np.isfinite(unit).all():
        return lambda target: float("nan")

    products = unit @ unit.T  # [k, k]
    values, vectors = np.linalg.eigh(products)
    largest = values.max(initial=0)
    is_kept = values > _RANK * largest  # none if all outputs are blank
    roots = np.sqrt(values[is_kept])
    vectors = vectors[:, is_kept]
    # [rank, k]: root^T root is the matrix of inner products.
    root = (vectors * roots).T

    def explain(target: Array) -> float:
        """Explains one output, [pixels]."""
        if not np.isfinite(target).all():
            return float("nan")
        if not len(root):  # SciPy would abort the process
            return 0.0

        (unit_target,) = normalize_outputs(target[None])
        products = unit @ unit_target  # [k]
        inside = products @ vectors / roots  # [rank]
        _, residual = scipy.optimize.nnls(root, inside)
        # The part of the target outside of the span is not explained.
        explained = inside @ inside - residual**2
        return float(np.clip(explained, 0, 1))

    return explain


def compute_projection_r2(target: Array, regressors: Array) -> float:
    """Explains a target with weights of either sign.

    Args:
        target: One output, [pixels].
        regressors: Outputs that are added up, [k, pixels].

    Returns:
        R^2 in [0, 1]; NaN if not finite.
    """
    has_target = np.isfinite(target).all()
    has_regressors = np.isfinite(regressors).all()
    if not has_target or not has_regressors:
        return float("nan")

    (unit,) = normalize_outputs(target[None])
    regressors = normalize_outputs(regressors)
    weights, *_ = np.linalg.lstsq(regressors.T, unit, rcond=1e-9)
    prediction = weights @ regressors
    residual = unit - prediction
    r2 = 1 - np.sum(residual**2)
    return float(r2.clip(0, 1))


def normalize_outputs(rows: Array) -> Array:
    """Scales outputs [n, pixels] to length one; blank ones stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


@single_threaded
def superpose(
    index: Array,
    outputs: Array,
    is_ood: Array,
) -> tuple[Array, Array]:
    """Predicts every output by `superposition`; an ID output from the others.

    Args:
        index: Grid indices, [n, F].
        outputs: Bright outputs, [n, ...].
        is_ood: Which points are held out, [n].

    Returns:
        Images [n, pixels] and their R^2 [n]; zeros and NaN where no ID point
        shares a factor.
    """
    is_id = ~is_ood
    flat = flatten_outputs(outputs)
    id_outputs = flat[is_id]
    # For every factor: the level of each point [n], and over the ID points of
    # each level the sum of outputs [levels, pixels] and the count [levels].
    factors = []
    for column in np.asarray(index).T:
        levels, level_of_point = np.unique(column, return_inverse=True)
        code = np.eye(len(levels))[level_of_point[is_id]]  # [n_id, levels]
        sums = code.T @ id_outputs
        factors.append((level_of_point, sums, code.sum(axis=0)))

    images = np.zeros_like(flat)
    r2 = np.full(len(flat), np.nan)
    for i, target in enumerate(flat):
        means = []
        for level_of_point, sums, counts in factors:
            level = level_of_point[i]
            # An ID output does not predict itself.
            num_others = counts[level] - is_id[i]
            if num_others > 0:
                sum_of_others = sums[level] - is_id[i] * target
                means.append(sum_of_others / num_others)
        if not means or not np.isfinite([target, *means]).all():
            continue

        images[i] = _project_onto(means, target)
        squared_length = target @ target
        if squared_length:
            residual = target - images[i]
            r2[i] = 1 - np.sum(residual**2) / squared_length
    return images, np.clip(r2, 0, 1)


def _project_onto(means: list[Array], target: Array) -> Array:
    """Combines a few images [pixels] by least squares to a target [pixels]."""
    regressors = normalize_outputs(np.stack(means))  # [k, pixels]
    # The normal equations, whose matrix is small: k is the number of factors.
    inverse = np.linalg.pinv(regressors @ regressors.T, rcond=1e-9)
    weights = inverse @ (regressors @ target)
    return weights @ regressors


def mark_scored(count: int, num_factors: int) -> Array:
    """Chooses the OOD points that are scored.

    These are all points, or of three and more factors at most `MAX_POINTS`: a
    random choice that is the same in every call.

    Args:
        count: Number of OOD points.
        num_factors: Number of factors.

    Returns:
        A mask, [count].
    """
    is_scored = np.ones(count, bool)
    if num_factors > 2 and count > MAX_POINTS:
        order = np.random.default_rng(0).permutation(count)
        is_scored[order[MAX_POINTS:]] = False
    return is_scored


def choose_memories(shares: Array, distances: Array) -> Array:
    """Chooses at most `MAX_MEMORIES` ID points that share a factor.

    Points that share more factors go first, and among them nearer points.

    Args:
        shares: Which factors ID points share with a point, [n_id, F].
        distances: Their distances from it, [n_id].

    Returns:
        Rows of ID points, ascending.
    """
    counts = shares.sum(axis=1)
    rows = np.flatnonzero(counts)
    # By the last key first.
    order = np.lexsort((distances[rows], -counts[rows]))
    return np.sort(rows[order[:MAX_MEMORIES]])


@single_threaded
def score_combinations(
    outputs: Array,
    regressors: Array,
    id_outputs: Array,
) -> Array:
    """Explains every OOD output by images that belong to it.

    Args:
        outputs: Bright OOD outputs, [n_ood, ...].
        regressors: The images of each output, [n_ood, k, pixels].
        id_outputs: Bright ID outputs, by which blank ones are judged,
            [n_id, ...].

    Returns:
        R^2, [n_ood]; NaN for a blank output.
    """
    outputs = flatten_outputs(outputs)
    id_outputs = flatten_outputs(id_outputs)
    r2 = np.full(len(outputs), np.nan)
    is_blank = find_blank(outputs, id_outputs)
    for i in np.flatnonzero(~is_blank):
        images = np.asarray(regressors[i], np.float64)
        r2[i] = compute_projection_r2(outputs[i], images)
    return r2


def summarize_superposition(scores: SuperpositionScores) -> Scores:
    """Averages R^2 over OOD points.

    Args:
        scores: By `compute_superposition`.

    Returns:
        `blank_fraction`, and `<predictor>_r2` over the points that have one.
    """
    summary = {"blank_fraction": mean_or_none(scores.is_blank)}
    for name in PREDICTORS:
        r2 = scores.r2[name]
        summary[f"{name}_r2"] = mean_or_none(r2[np.isfinite(r2)])
    return summary


def find_blank(
    ood_outputs: Array,
    id_outputs: Array,
    share: float = BLANK,
) -> Array:
    """Marks OOD outputs that are blank, or faint, beside ID outputs.

    The length of an output is the root of its energy, its sum of squares.

    Args:
        ood_outputs: OOD outputs, [n_ood, pixels].
        id_outputs: ID outputs, [n_id, pixels].
        share: Length up to which an output is marked, relative to the median
            length of ID outputs.

    Returns:
        A mask, [n_ood].
    """
    id_energies = np.sum(id_outputs**2, axis=1)
    id_energies = id_energies[np.isfinite(id_energies)]
    median = 0.0
    if id_energies.size:
        median = float(np.median(id_energies))

    energies = np.sum(ood_outputs**2, axis=1)
    return energies <= share**2 * median


@single_threaded
def compute_sharing(
    factors: Array,
    outputs: Array,
    is_ood: Array,
    space: FactorSpace,
) -> Arrays:
    """Explains OOD outputs by ID outputs that share a factor (figure 1d).

    Args:
        factors: Values of the factors, on the grid of the space, [n, F].
        outputs: Bright outputs at these points, [n, ...].
        is_ood: Which points are held out, [n].
        space: The factors.

    Returns:
        R^2 on each of `SETS`, in [0, 1], [n_ood]. NaN for outputs that are
        faint, even (of one gray), not finite or not chosen, and where no ID
        point shares a factor.
    """
    index = space.to_index(factors)
    id_index = index[~is_ood]
    ood_index = index[is_ood]

    flat = flatten_outputs(outputs)
    contrast = _remove_means(flat)
    id_contrast = contrast[~is_ood]
    ood_contrast = contrast[is_ood]
    num_ood = len(ood_contrast)
    scored = mark_scored(num_ood, len(space))
    scored &= ~find_faint(outputs, is_ood)
    scored &= ood_contrast.any(axis=1)

    r2 = {}
    for name in SETS:
        r2[name] = np.full(num_ood, np.nan)
    for i in np.flatnonzero(scored):
        offsets = compute_offsets(id_index, ood_index[i], space)
        shares = offsets == 0
        if not shares.any():
            continue

        memories = _choose_sets(offsets, space)
        for name, alternatives in memories.items():
            scores = []
            for rows in alternatives:
                explain = make_span(id_contrast[rows])
                scores.append(explain(ood_contrast[i]))
            if scores:
                r2[name][i] = max(scores)
    return r2


def _remove_means(images: Array) -> Array:
    """Subtracts from images [n, P] their mean over pixels.

    Even images, whose contrast is rounding, become zeros.
    """
    energies = np.sum(images**2, axis=1)
    contrast = images - images.mean(axis=1, keepdims=True)
    variations = np.sum(contrast**2, axis=1)
    contrast[variations <= EVEN * energies] = 0.0
    return contrast


def _choose_sets(offsets: Array, space: FactorSpace) -> dict[str, list[Array]]:
    """Chooses the memories of each of `SETS` for one OOD point.

    Args:
        offsets: Grid steps from the point to the ID points, [n_id, F].
        space: The factors.

    Returns:
        Alternatives by set, each of them rows of ID points; the alternative
        that explains most counts.
    """
    shares = offsets == 0
    distances = np.linalg.norm(offsets, axis=1)
    distances = distances.round(6)
    sharing = choose_memories(shares, distances)
    single = []
    for mask in shares.T:
        if mask.any():
            shares_one = mask[:, None]  # [n_id, 1]
            single.append(choose_memories(shares_one, distances))

    clear = _list_clear(offsets, distances, space)
    rival = clear[: len(sharing)]
    rivals = []
    if len(rival) == len(sharing):  # a small grid has fewer
        rivals.append(rival)
    return {
        "sharing": [sharing],
        "rival": rivals,
        "single": single,
    }


def _list_clear(offsets: Array, distances: Array, space: FactorSpace) -> Array:
    """Lists the ID points that differ clearly in every factor.

    Args:
        offsets: Grid steps from a point to the ID points, [n_id, F].
        distances: The lengths of these steps, [n_id].
        space: The factors.

    Returns:
        Rows of ID points, the nearest first.
    """
    least = np.full(len(space), CLEAR)
    for column, factor in enumerate(space):
        if factor.categorical:
            least[column] = 0.0  # any other class differs clearly
    clear = np.flatnonzero((offsets > least).all(axis=1))
    order = np.argsort(distances[clear], kind="stable")
    return clear[order]


def find_faint(outputs: Array, is_ood: Array) -> Array:
    """Marks the OOD outputs that are too faint to be scored.

    Args:
        outputs: Bright outputs, [n, ...].
        is_ood: Which points are held out, [n].

    Returns:
        A mask, [n_ood].
    """
    flat = flatten_outputs(outputs)
    return find_blank(flat[is_ood], flat[~is_ood], share=FAINT)


def summarize_sharing(r2: Arrays, distance: Array, is_faint: Array) -> Scores:
    """Averages R^2 over OOD points near ID, and over points far from it.

    Args:
        r2: By `compute_sharing`.
        distance: Grid steps from every OOD point to ID, [n_ood]; far begins
            at `FAR`.
        is_faint: By `find_faint`, [n_ood].

    Returns:
        `<set>_far_r2_centered`, `faint_far_share`, and the same for `near`.
    """
    is_far = distance >= FAR
    places = {
        "far": is_far,
        "near": ~is_far,
    }
    numbers = {}
    for place, rows in places.items():
        for name, scores in r2.items():
            values = scores[rows & np.isfinite(scores)]
            numbers[f"{name}_{place}_r2_centered"] = mean_or_none(values)
        numbers[f"faint_{place}_share"] = mean_or_none(is_faint[rows])
    return numbers


@computes(
    "run",
    AT_MOST_ONE,
    "sharing_far_r2_centered rival_far_r2_centered single_far_r2_centered "
    "sharing_near_r2_centered rival_near_r2_centered single_near_r2_centered",
)
@computes(
    "run",
    SHARE,
    "faint_far_share faint_near_share",
    better="low",
)
def measure_sharing(analysis: RunAnalysis) -> Scores:
    """Explains OOD outputs by memories that share a factor (figure 1d)."""
    if not analysis.has_hole:
        return {}

    is_ood = analysis.splits.is_ood
    outputs = analysis.bright_outputs
    r2 = compute_sharing(
        factors=analysis.splits.grid,
        outputs=outputs,
        is_ood=is_ood,
        space=analysis.dataset.space,
    )
    return summarize_sharing(
        r2,
        distance=analysis.superposition.distance,
        is_faint=find_faint(outputs, is_ood),
    )
