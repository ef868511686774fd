"""Additive structure of embeddings: sums of parts, one for each factor.

For embeddings y of combinations (f_1 ... f_F), least squares on the one-hot
codes of all factors gives parts a_i(f_i) and the share that they explain:

    y = mean + sum_i a_i(f_i) + rest        R^2 = 1 - |rest|^2 / |y - mean|^2

Everything follows from second `moments` of one-hot codes and embeddings.

    additive_r2            the share above, fitted to all rows
    additive_r2_whitened   its mean over principal components, each weighted
                           alike; it needs more rows than units
    additive_r2_probes     the same share within the span of linear probes
    composed               error of mean + parts, both fitted to ID rows, over
                           the error of the ID mean
    accuracy               linear discriminants of each factor, fitted to four
                           fifths of the ID rows, tested on the others and on
                           OOD rows

The same numbers with permuted classes are the chance level.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy import ndarray as Array
from scipy import linalg, sparse

from tfcomp.metrics import features
from tfcomp.metrics.features import Scores, finite_or_none
from tfcomp.representations.moments import ID, ID_TEST, OOD, Layer, Moments

MAX_UNITS = 4096
TEST_SHARE = 5  # every fifth ID row tests the probes
# Eigenvalues below, relative to the largest, are rounding.
FLOOR = 1e-10
SHRINKAGE = 1e-3  # of a covariance toward a multiple of the identity
# Share of a part's variance in the directions that angles compare.
KEPT = 0.99


@dataclass(frozen=True)
class Additivity:
    """Numbers of one layer: its scores, and tables of factors and pairs."""

    scores: Scores
    parts: list[Scores]  # by factor
    pairs: list[Scores]  # by pair of factors


def measure_additivity(
    values: Array, index: Array, sizes: Sequence[int], is_ood: Array
) -> tuple[Additivity, Additivity]:
    """Returns numbers of embeddings [n, d], and numbers of permuted classes."""
    layer = Layer(_reduce_units(values), index, sizes, split_rows(is_ood))
    moments = layer.collect()
    order = np.random.default_rng(0).permutation(len(index))
    permuted = replace(layer, index=index[order])
    chance = permuted.collect(moments)
    return _summarize(layer, moments), _summarize(permuted, chance)


def split_rows(is_ood: Array) -> Array:
    """Deals rows into ID, ID_TEST (a fixed random fifth of ID) and OOD."""
    order = np.random.default_rng(0).permutation(len(is_ood))
    sets = np.where(order % TEST_SHARE == 0, ID_TEST, ID)
    return np.where(is_ood, OOD, sets)


def _reduce_units(values: Array) -> Array:
    """Returns `MAX_UNITS` units at most: rotated, or added in random groups."""
    # Less the first row: moments of a common offset would be rounding.
    count, units = values.shape
    if count <= min(units, MAX_UNITS):
        shifted = values.astype(np.float64) - values[:1]
        squares, axes = np.linalg.eigh(shifted @ shifted.T)
        return axes * np.sqrt(np.maximum(squares, 0.0))
    if units > MAX_UNITS:
        rng = np.random.default_rng(0)
        places = np.arange(units), rng.integers(MAX_UNITS, size=units)
        signs = rng.choice([-1.0, 1.0], units).astype(np.float32)
        values = values @ sparse.csr_array((signs, places), (units, MAX_UNITS))
    return values - values[:1]


def _summarize(layer: Layer, moments: Sequence[Moments]) -> Additivity:
    whole = moments[ID] + moments[ID_TEST] + moments[OOD]
    whole = whole.about(whole.mean)
    parts, squares = whole.fit(), whole.squares
    # The rest is orthogonal to the codes.
    rest = squares - parts.T @ whole.design @ parts
    weights, accuracy = _probe(layer, moments)
    axes, lengths, _ = np.linalg.svd(weights, full_matrices=False)
    axes = axes[:, lengths > 1e-6 * lengths.max(initial=0.0)]
    scores: Scores = {
        "additive_r2": _explain(rest, squares),
        "additive_r2_whitened": _explain_whitened(rest, whole),
        "additive_r2_probes": _explain(
            *(axes.T @ part @ axes for part in (rest, squares))
        ),
        **_compose(moments),
    }
    factors, pairs = _compare_parts(layer, whole, parts)
    for name, hits in accuracy.items():
        scores[name] = finite_or_none(float(hits.mean()))
        for row, share in zip(factors, hits, strict=True):
            row[name] = finite_or_none(share)
    return Additivity(scores, factors, pairs)


def _explain(rest: Array, squares: Array) -> float | None:
    total = np.trace(squares)
    return finite_or_none(1 - np.trace(rest) / total) if total > 0 else None


def _explain_whitened(rest: Array, whole: Moments) -> float | None:
    """Averages R^2 over components; None if they are as many as rows allow."""
    values, axes = np.linalg.eigh(whole.squares)
    kept = values > FLOOR * max(values[-1], 0.0)
    if not 0 < kept.sum() < whole.count - 1:
        return None
    axes = axes[:, kept]
    shares = np.einsum("ij,ij->j", axes, rest @ axes) / values[kept]
    return finite_or_none(1 - shares.mean())


def _compose(moments: Sequence[Moments]) -> Scores:
    known = moments[ID] + moments[ID_TEST]
    parts = known.about(known.mean).fit()
    numbers: Scores = {}
    for name, part in (("id", known), ("ood", moments[OOD])):
        part = part.about(known.mean)
        total = np.trace(part.squares)
        error = total - 2 * np.vdot(parts, part.cross)
        error += np.vdot(parts, part.design @ parts)
        ratio = error / total if total > 0 else None
        numbers[f"composed_{name}"] = finite_or_none(ratio)
    return numbers


def _probe(
    layer: Layer, moments: Sequence[Moments]
) -> tuple[Array, dict[str, Array]]:
    """Fits discriminants to ID rows; returns weights, and accuracies."""
    known = moments[ID].about(moments[ID].mean)
    fits = [_fit_discriminant(known, part) for part in layer.slices]
    weights = np.hstack([weight for weight, _ in fits])
    offsets = np.concatenate([offset for _, offset in fits])
    accuracy = {}
    for name, number in (("id", ID_TEST), ("ood", OOD)):
        hits = np.zeros(len(layer.sizes))
        for index, _, values in layer.iterate(number):
            votes = (values - moments[ID].mean) @ weights + offsets
            best = [votes[:, part].argmax(axis=1) for part in layer.slices]
            hits += (np.transpose(best) == index).sum(axis=0)
        accuracy[f"accuracy_{name}"] = hits / (moments[number].count or np.nan)
    return weights, accuracy


def _fit_discriminant(moments: Moments, part: slice) -> tuple[Array, Array]:
    """Returns weights [d, size] and offsets of a linear discriminant."""
    counts = moments.counts[part]
    means = moments.cross[part] / np.maximum(counts, 1)[:, None]
    within = moments.squares - (means.T * counts) @ means
    level = SHRINKAGE * np.trace(moments.squares) / len(within)
    within[np.diag_indices_from(within)] += level or 1.0
    weights = linalg.solve(within, means.T, assume_a="pos") * counts.sum()
    offsets = -0.5 * np.einsum("kd,dk->k", means, weights)
    return weights, np.where(counts > 0, offsets, -np.inf)


def _compare_parts(
    layer: Layer, whole: Moments, parts: Array
) -> tuple[list[Scores], list[Scores]]:
    """Returns share and rank of each part, and the angles of all pairs."""
    total = max(np.trace(whole.squares), 1e-300)
    matrices, bases = [], []
    rows: list[Scores] = []
    pairs: list[Scores] = []
    for columns in layer.slices:
        counts, part = whole.counts[columns], parts[columns]
        part = part - counts @ part / counts.sum()
        matrix = part * np.sqrt(counts)[:, None]
        _, lengths, axes = np.linalg.svd(matrix, full_matrices=False)
        squares = lengths**2
        share = np.cumsum(squares) / (squares.sum() or 1.0)
        matrices.append(matrix)
        bases.append(axes[: np.searchsorted(share, KEPT) + 1])
        rank = float(features.compute_effective_rank(squares))
        rows.append({"share": float(squares.sum() / total), "rank": rank})
    for a, b in itertools.combinations(range(len(rows)), 2):
        scale = np.linalg.norm(matrices[a]) * np.linalg.norm(matrices[b])
        if scale <= FLOOR * total:
            pairs.append({"cosine": None, "angle": None})
            continue
        overlap = np.linalg.norm(matrices[a] @ matrices[b].T) / scale
        cosines = np.linalg.svd(bases[a] @ bases[b].T, compute_uv=False)
        angle = np.degrees(np.arccos(cosines.max().clip(0, 1)))
        pairs.append({"cosine": float(overlap), "angle": float(angle)})
    return rows, pairs
