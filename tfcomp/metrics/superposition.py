"""Tests whether OOD outputs are superpositions of the model's ID outputs.

The paper's claim (section 3.3, fig. 1d): asked for an unseen (x, y), a decoder
adds up its memories of x and of y. Four predictors of the output at an OOD
point, all of them from ID outputs:

    superposition        a mean output per factor, over the ID points that
                         share its value; combined by least squares
    superposition_span   every ID output that shares a value, combined with
                         nonnegative weights
    conjunctive          as many mean outputs, of the nearest ID points in
                         factor space and of the next nearest ones
    conjunctive_span     as many ID outputs as superposition_span has, the
                         nearest ones, with nonnegative weights

`superposition` is the main score, and `conjunctive` its rival with as many free
parameters; the spans are for models that superpose few memories. Superposers
have 1, true composers .014 (.17 in superposition_span, as bumps overlap next to
the border).

R^2 = 1 - SSE / SST per point, with SST about zero and no intercept. Outputs
are *bright* (background 0), so R^2 is a squared cosine: 0 for a blank
prediction, and independent of the scale of the output. *Blank* outputs, which
are rounding noise, have no score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
from numpy import ndarray as Array

from tfcomp.datasets.factors import FactorSpace
from tfcomp.metrics.distances import compute_offsets
from tfcomp.metrics.features import Scores, mean_or_none, single_threaded
from tfcomp.metrics.kernels import flatten_outputs

PREDICTORS = (
    "superposition",
    "superposition_span",
    "conjunctive",
    "conjunctive_span",
)
Explain = Callable[[Array], float]  # from a target [pixels] to R^2
# In grid steps: from here on no bump of an ID neighbor (of sigma 1) reaches.
FAR = 4.0
# Of more ID points that share a factor, those that share most of them.
MAX_MEMORIES = 256
# Of more OOD points of three factors or more, a fixed random choice.
MAX_POINTS = 256
# Length, relative to the median ID output, up to which an output is rounding.
BLANK = 1e-4
# Relative to the largest eigenvalue of inner products: below is rounding.
_RANK = 1e-13


@dataclass(frozen=True)
class SuperpositionScores:
    """Scores per OOD point, in the order of the table, each [n_ood].

    R^2, by name of `PREDICTORS`, is NaN at a point that is blank, not finite,
    alone, or not chosen (see `MAX_POINTS`). Distances to ID are grid steps.
    """

    r2: dict[str, Array]
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
    """Scores sets of bright images at the OOD points, [n_ood, pixels] each.

    Outputs [n, ...] are bright, factor values [n, F] on the space's grid.
    """
    index = space.to_index(factors)
    known = flatten_outputs(outputs)[~is_ood]
    targets = [np.asarray(unseen, np.float64) for unseen in targets]
    blank = [find_blank(unseen, known) for unseen in targets]
    shape = len(targets), len(PREDICTORS), int(is_ood.sum())
    r2, distance = np.full(shape, np.nan), np.full(shape[-1], np.inf)
    scored = choose_scored(shape[-1], len(space))
    for i, point in enumerate(index[is_ood]):
        offsets = compute_offsets(index[~is_ood], point, space)
        distances = np.linalg.norm(offsets, axis=1).round(6)
        distance[i] = distances.min(initial=np.inf)
        shares = offsets == 0
        if not scored[i] or not shares.any():
            continue
        sharing = choose_memories(shares, distances)
        nearest = np.argsort(distances, kind="stable")[: len(sharing)]
        means = [known[mask].mean(axis=0) for mask in shares.T if mask.any()]
        shells = [
            known[distances == distance].mean(axis=0)
            for distance in np.unique(distances)[: len(space)]
        ]
        explain: list[Explain] = [  # in the order of PREDICTORS
            partial(project, regressors=np.stack(means)),
            make_span(known[sharing]),
            partial(project, regressors=np.stack(shells)),
            make_span(known[nearest]),
        ]
        for k, unseen in enumerate(targets):
            if not blank[k][i]:
                r2[k, :, i] = [score(unseen[i]) for score in explain]
    named = [dict(zip(PREDICTORS, scores, strict=True)) for scores in r2]
    pairs = zip(named, blank, strict=True)
    return [SuperpositionScores(*pair, distance) for pair in pairs]


def make_span(regressors: Array) -> Explain:
    """Returns R^2 of targets on rows [k, pixels] with nonnegative weights."""
    unit = normalize_outputs(regressors)
    if not np.isfinite(unit).all():
        return lambda target: float("nan")
    values, vectors = np.linalg.eigh(unit @ unit.T)
    kept = values > _RANK * values.max(initial=0)  # none of blank ones
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    root = (vectors * roots).T  # R^T R is the matrix of inner products

    def explain(target: Array) -> float:
        if not np.isfinite(target).all():
            return float("nan")
        if not len(root):  # SciPy would abort the process
            return 0.0
        inside = unit @ normalize_outputs(target[None])[0] @ vectors / roots
        error = scipy.optimize.nnls(root, inside)[1] ** 2
        # Parts outside of their span are not explained.
        return float(np.clip(inside @ inside - error, 0, 1))

    return explain


def project(target: Array, regressors: Array) -> float:
    """Returns R^2 of a target [pixels] on rows with weights of either sign."""
    if not (np.isfinite(target).all() and np.isfinite(regressors).all()):
        return float("nan")
    unit = normalize_outputs(target[None])[0]
    regressors = normalize_outputs(regressors)
    weights = np.linalg.lstsq(regressors.T, unit, rcond=1e-9)[0]
    error = np.sum((unit - weights @ regressors) ** 2)
    return float(np.clip(1 - error, 0, 1))


def normalize_outputs(rows: Array) -> Array:
    """Scales outputs [n, pixels] to length one; blank ones stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


@single_threaded
def superpose(
    index: Array, outputs: Array, is_ood: Array
) -> tuple[Array, Array]:
    """Returns images of `superposition` [n, pixels] and their R^2 [n].

    An ID point is predicted from the others; zeros and NaN if none shares.
    """
    known = ~np.asarray(is_ood, bool)
    flat = flatten_outputs(outputs)
    factors = []  # level of each point, and sums and counts of each level
    for column in np.asarray(index).T:
        levels, rows = np.unique(column, return_inverse=True)
        code = np.eye(len(levels))[rows[known]]
        factors.append((rows, code.T @ flat[known], code.sum(axis=0)))
    images, r2 = np.zeros_like(flat), np.full(len(flat), np.nan)
    for i, target in enumerate(flat):
        means = [
            (sums[rows[i]] - known[i] * target) / number
            for rows, sums, counts in factors
            if (number := counts[rows[i]] - known[i]) > 0
        ]
        if not means or not np.isfinite([target, *means]).all():
            continue
        regressors = normalize_outputs(np.stack(means))
        # The normal equations of few unit vectors: one product of each two.
        inverse = np.linalg.pinv(regressors @ regressors.T, rcond=1e-9)
        images[i] = (inverse @ (regressors @ target)) @ regressors
        if length := target @ target:
            r2[i] = 1 - np.sum((target - images[i]) ** 2) / length
    return images, np.clip(r2, 0, 1)


def choose_scored(count: int, num_factors: int) -> Array:
    """Returns which OOD points are scored: all, or some of many factors."""
    chosen = np.ones(count, bool)
    if num_factors > 2 and count > MAX_POINTS:
        order = np.random.default_rng(0).permutation(count)
        chosen[order[MAX_POINTS:]] = False
    return chosen


def choose_memories(shares: Array, distances: Array) -> Array:
    """Returns rows of the nearest `MAX_MEMORIES` that share most factors."""
    counts = shares.sum(axis=1)
    rows = np.flatnonzero(counts)
    order = np.lexsort((distances[rows], -counts[rows]))
    return np.sort(rows[order[:MAX_MEMORIES]])


@single_threaded
def score_combinations(
    outputs: Array, regressors: Array, known: Array
) -> Array:
    """Returns R^2 of OOD outputs on their own images, [n_ood, k, pixels]."""
    outputs, known = flatten_outputs(outputs), flatten_outputs(known)
    r2 = np.full(len(outputs), np.nan)
    for i in np.flatnonzero(~find_blank(outputs, known)):
        r2[i] = project(outputs[i], np.asarray(regressors[i], np.float64))
    return r2


def summarize_superposition(
    scores: SuperpositionScores, min_distance: float
) -> Scores:
    """Averages over OOD points at least that far from ID (see `FAR`)."""
    chosen = scores.distance >= min_distance
    summary = {"blank_fraction": mean_or_none(scores.is_blank[chosen])}
    for name in PREDICTORS:
        r2 = scores.r2[name][chosen]
        summary[f"{name}_r2"] = mean_or_none(r2[np.isfinite(r2)])
    return summary


def find_blank(unseen: Array, known: Array, share: float = BLANK) -> Array:
    """Returns which outputs [n_ood, pixels] are blank, beside known ones."""
    energies = (known**2).sum(axis=1)
    energies = energies[np.isfinite(energies)]
    median = float(np.median(energies)) if energies.size else 0.0
    return (unseen**2).sum(axis=1) <= share**2 * median
