"""Additive structure of embeddings: sums of parts, one for each factor.

For embeddings y of combinations (f_1 ... f_F), least squares on the one-hot
codes of all factors gives parts a_i(f_i) and the share that they explain:

    y = mean + sum_i a_i(f_i) + rest        R^2 = 1 - |rest|^2 / |y - mean|^2

Numbers of a layer:

    additive_r2            the share above, fitted to all rows
    additive_r2_marginal   the same share of marginal means: a_i(f_i) is the
                           mean over all rows with this value, less the mean
    additive_r2_whitened   the first one's mean over principal components, each
                           weighted alike; it needs more rows than units
    additive_r2_probes     the same share within the span of linear probes
    abs_cosine             mean absolute cosine between marginal means of values
                           of different factors
    composed               error of mean + parts, both fitted to ID rows, over
                           the error of the ID mean
    accuracy               linear discriminants of each factor, fitted to four
                           fifths of the ID rows, tested on the others and on
                           OOD rows

`additive_r2_marginal`, `abs_cosine` (also by pair of factors) and `k95` (by
factor) are defined as in the code of arXiv 2602.24264. On complete grids
marginal means are the least squares solution, so that the first two numbers
are equal. On incomplete grids they are not: marginal means mix the factors.

The same numbers with permuted classes, the mean of ten permutations, are the
chance level.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array
from scipy import linalg

from tfcomp.metrics import features
from tfcomp.metrics.registry import (
    Arrays,
    Scores,
    average,
    finite_or_none,
    mean_or_none,
)
from tfcomp.representations.moments import (
    ID,
    ID_TEST,
    OOD,
    Layer,
    Moments,
    reduce_units,
    split_rows,
)

NUM_PERMUTATIONS = 10
# Eigenvalues below, relative to the largest, are rounding.
FLOOR = 1e-10
# Lengths below, relative to the largest, are rounding.
MIN_LENGTH = 1e-6
SHRINKAGE = 1e-3  # of a covariance toward a multiple of the identity
# Share of a part's variance in the directions that angles compare.
KEPT = 0.99
MEANS_KEPT = 0.95  # the same share for `k95`
ACCURACIES = ("accuracy_id", "accuracy_ood")


class Additivity(NamedTuple):
    """Numbers of one layer: its scores, and tables of factors and pairs."""

    scores: Scores
    parts: list[Scores]  # by factor
    pairs: list[Scores]  # by pair of factors


def measure_additivity(
    values: Array,
    index: Array,
    sizes: Sequence[int],
    is_ood: Array,
) -> tuple[Additivity, Additivity]:
    """Measures how far embeddings are sums of parts, one for each factor.

    Accuracies leave out rows with a value that the probes were not fitted to,
    and factors without other rows: such values cannot be read.

    Args:
        values: Embeddings, [n, d].
        index: Grid indices of their combinations, [n, F].
        sizes: Numbers of values of the factors.
        is_ood: Which combinations are held out, [n].

    Returns:
        The numbers, and their chance level: means over permuted classes.
    """
    layer = Layer(
        values=reduce_units(values),
        index=index,
        sizes=sizes,
        sets=split_rows(is_ood),
    )
    moments = layer.collect()
    components = _find_components(moments)
    given = _summarize(layer, moments, components)

    rng = np.random.default_rng(0)
    results = []
    for _ in range(NUM_PERMUTATIONS):
        order = rng.permutation(len(index))
        permuted = replace(layer, index=index[order])
        permuted_moments = permuted.collect(moments)
        numbers = _summarize(permuted, permuted_moments, components)
        results.append(numbers)
    chance = _average(results)

    _average_accuracy(given, given)
    _average_accuracy(chance, given)
    return given, chance


def measure_composition(
    values: Array,
    index: Array,
    sizes: Sequence[int],
    is_ood: Array,
) -> Scores:
    """Measures `composed` and `accuracy` alone, in a tenth of the time.

    Args:
        values: Embeddings [n, d], a result of `reduce_units`.
        index: As for `measure_additivity`.
        sizes: As for `measure_additivity`.
        is_ood: As for `measure_additivity`.
    """
    layer = Layer(values, index, sizes, split_rows(is_ood))
    moments = layer.collect()
    scores = _compose(moments)
    _, accuracy = _probe(layer, moments)
    for name, hits in accuracy.items():
        is_readable = np.isfinite(hits)
        scores[name] = mean_or_none(hits[is_readable])
    return scores


def _center_all(moments: Sequence[Moments]) -> Moments:
    """Adds the moments of all sets, about the mean of all rows."""
    id_total = moments[ID] + moments[ID_TEST]
    total = id_total + moments[OOD]
    return total.about(total.mean)


def _find_components(moments: Sequence[Moments]) -> tuple[Array, Array]:
    """Finds principal components of all embeddings.

    Returns:
        Axes [d, k], and sums of squares along them [k]; none unless there are
        more rows than components.
    """
    total = _center_all(moments)
    squares, axes = np.linalg.eigh(total.squares)
    largest = max(squares[-1], 0.0)
    is_kept = squares > FLOOR * largest
    num_kept = is_kept.sum()
    if num_kept >= total.count - 1:
        is_kept[:] = False
    kept_axes = axes[:, is_kept]
    return kept_axes, squares[is_kept]


def _summarize(
    layer: Layer,
    moments: Sequence[Moments],
    components: tuple[Array, Array],
) -> Additivity:
    """Computes the numbers of a layer, without its mean accuracies.

    Args:
        layer: Its embeddings.
        moments: Its moments, by set.
        components: By `_find_components`, which do not depend on classes.
    """
    total = _center_all(moments)
    effects = total.fit()
    explained = effects.T @ total.design @ effects
    # The rest is orthogonal to the codes.
    rest = total.squares - explained
    variance = np.trace(total.squares)
    error = total.measure_error(total.class_means)

    weights, accuracy = _probe(layer, moments)
    scores: Scores = {
        "additive_r2": _explain(np.trace(rest), variance),
        "additive_r2_marginal": _explain(error, variance),
        "additive_r2_whitened": _explain_whitened(rest, *components),
        "additive_r2_probes": _explain_probed(rest, total.squares, weights),
    }

    scale = max(variance, 1e-300)
    parts = []
    for columns in layer.slices:
        part = _describe_part(
            effects[columns],
            total.class_means[columns],
            total.counts[columns],
            scale,
        )
        parts.append(part)
    pairs, abs_cosine = _compare_all(parts, scale)
    scores["abs_cosine"] = abs_cosine
    scores |= _compose(moments)

    rows = []
    for factor, part in enumerate(parts):
        row = dict(part.row)
        for name in ACCURACIES:
            accuracies = accuracy[name]
            row[name] = finite_or_none(accuracies[factor])
        rows.append(row)
    return Additivity(scores, rows, pairs)


def _explain_probed(
    rest: Array,
    squares: Array,
    weights: Array,
) -> float | None:
    """Computes the explained variance of what linear probes see.

    Args:
        rest: Squares of residuals, [d, d].
        squares: Squares of all rows, [d, d].
        weights: Weights of probes, [d, K].
    """
    # An orthonormal basis of the span of the weights.
    directions, lengths, _ = np.linalg.svd(weights, full_matrices=False)
    largest = lengths.max(initial=0.0)
    axes = directions[:, lengths > MIN_LENGTH * largest]
    probed_rest = axes.T @ rest @ axes
    probed_squares = axes.T @ squares @ axes
    error = np.trace(probed_rest)
    variance = np.trace(probed_squares)
    return _explain(error, variance)


def _average(results: Sequence[Additivity]) -> Additivity:
    """Averages the numbers of several permutations."""
    scores, parts, pairs = zip(*results, strict=True)
    part_rows = map(_average_rows, zip(*parts, strict=True))
    pair_rows = map(_average_rows, zip(*pairs, strict=True))
    return Additivity(
        scores=_average_rows(scores),
        parts=list(part_rows),
        pairs=list(pair_rows),
    )


def _average_rows(rows: Sequence[Scores]) -> Scores:
    """Averages each number; None where one of the rows has no number."""
    means = {}
    for name in rows[0]:
        numbers = [row[name] for row in rows]
        means[name] = average(numbers)
    return means


def _average_accuracy(
    result: Additivity,
    given: Additivity,
) -> None:
    """Adds mean accuracies over the factors that can be read.

    Args:
        result: The numbers to add them to.
        given: The numbers of the given classes, where the factors that cannot
            be read have no accuracy.
    """
    for name in ACCURACIES:
        shares = []
        pairs = zip(result.parts, given.parts, strict=True)
        for row, given_row in pairs:
            if given_row[name] is None:
                row[name] = None
            else:
                shares.append(row[name])
        result.scores[name] = average(shares)


class Part(NamedTuple):
    """The part of one factor, less its mean."""

    matrix: Array  # a row for each value, by the root of its count, [size, d]
    basis: Array  # directions of `KEPT` of its variance, [k, d]
    directions: Array  # of the means of values, NaN if rounding, [m, d]
    row: Scores  # its numbers, without accuracies


def _describe_part(
    effects: Array,
    means: Array,
    counts: Array,
    total: float,
) -> Part:
    """Finds the principal directions of a part.

    `k95` is the number of dimensions with 95 % of the squared length of the
    marginal means, each value counted once (arXiv 2602.24264).

    Args:
        effects: By `Moments.fit`, [size, d].
        means: Marginal means about the mean of all rows, [size, d].
        counts: Rows of each value, [size].
        total: Variance of all rows.
    """
    center = counts @ effects / counts.sum()
    roots = np.sqrt(counts)
    centered = effects - center
    matrix = centered * roots[:, None]
    _, values, axes = np.linalg.svd(matrix, full_matrices=False)
    squares = values**2
    num_kept = _count_components(squares, KEPT)
    directions, k95 = _describe_means(means, counts, total)
    share = squares.sum() / total
    rank = features.compute_effective_rank(squares)
    row: Scores = {
        "share": float(share),
        "rank": float(rank),
        "k95": k95,
    }
    return Part(
        matrix=matrix,
        basis=axes[:num_kept],
        directions=directions,
        row=row,
    )


def _describe_means(
    means: Array,
    counts: Array,
    total: float,
) -> tuple[Array, int | None]:
    """Finds directions and `k95` of the marginal means of a factor.

    Args:
        means: Marginal means about the mean of all rows, [size, d].
        counts: Rows of each value, [size].
        total: Variance of all rows.

    Returns:
        A direction for each value that occurs, NaN if means are rounding; and
        `k95`, None if they are.
    """
    # A mean of length 0 has a cosine of 0 with all others.
    lengths = np.linalg.norm(means, axis=1)
    shortest = MIN_LENGTH * lengths.max()
    values = np.linalg.svd(means, compute_uv=False)
    k95: int | None = _count_components(values**2, MEANS_KEPT)
    variance = counts @ lengths**2
    if variance <= FLOOR * total:
        shortest = np.nan
        k95 = None

    divisors = np.maximum(lengths, shortest)
    directions = means / divisors[:, None]
    is_present = counts > 0
    return directions[is_present], k95


def _count_components(squares: Array, share: float) -> int:
    """Counts the first components that have a share of the variance.

    Args:
        squares: Of singular values, the largest first.
        share: The share that they have to reach.
    """
    total = squares.sum() or 1.0
    shares = np.cumsum(squares) / total
    last = np.searchsorted(shares, share)
    return int(last) + 1


def _explain(error: float, total: float) -> float | None:
    """Computes R^2 from sums of squares of an error, and of all."""
    if not total > 0:
        return None
    return finite_or_none(1 - error / total)


def _explain_whitened(
    rest: Array,
    axes: Array,
    squares: Array,
) -> float | None:
    """Averages R^2 over principal components; None without any.

    Args:
        rest: Second moments of the rest, [d, d].
        axes: Principal components, [d, k].
        squares: Sums of squares along them, [k].
    """
    if not squares.size:
        return None

    products = rest @ axes
    rest_squares = np.einsum("ij,ij->j", axes, products)
    shares = rest_squares / squares
    mean = shares.mean()
    return finite_or_none(1 - mean)


def _compose(moments: Sequence[Moments]) -> Scores:
    """Computes errors of composed embeddings over errors of the ID mean."""
    id_moments = moments[ID] + moments[ID_TEST]
    mean = id_moments.mean
    centered = id_moments.about(mean)
    parts = centered.fit()

    subsets = {
        "id": centered,
        "ood": moments[OOD].about(mean),
    }
    numbers: Scores = {}
    for name, subset in subsets.items():
        total = np.trace(subset.squares)
        error = subset.measure_error(parts)
        ratio = None
        if total > 0:
            ratio = finite_or_none(error / total)
        numbers[f"composed_{name}"] = ratio
    return numbers


def _probe(
    layer: Layer,
    moments: Sequence[Moments],
) -> tuple[Array, Arrays]:
    """Fits discriminants to ID rows, and tests them.

    Returns:
        Weights [d, K], and accuracies [F] by name, over rows with values that
        were fitted; NaN without such rows.
    """
    mean = moments[ID].mean
    fitted = moments[ID].about(mean)
    all_weights = []
    all_offsets = []
    for part in layer.slices:
        weights, offsets = _fit_discriminant(fitted, part)
        all_weights.append(weights)
        all_offsets.append(offsets)
    weights = np.hstack(all_weights)  # [d, K]
    offsets = np.concatenate(all_offsets)  # [K]

    num_factors = len(layer.sizes)
    is_fitted = fitted.counts > 0
    accuracy = {}
    for name, number in zip(ACCURACIES, (ID_TEST, OOD), strict=True):
        hits = np.zeros(num_factors)
        counts = np.zeros(num_factors)
        for index, _, values in layer.iterate(number):
            centered = values - mean
            votes = centered @ weights
            votes = votes + offsets  # [b, K]
            for factor, part in enumerate(layer.slices):
                truth = index[:, factor]
                readable_values = is_fitted[part]
                is_readable = readable_values[truth]
                factor_votes = votes[:, part]
                best = factor_votes.argmax(axis=1)
                is_right = best == truth
                hits[factor] += is_right.sum()
                counts[factor] += is_readable.sum()
        divisors = np.where(counts > 0, counts, np.nan)
        accuracy[name] = hits / divisors
    return weights, accuracy


def _fit_discriminant(
    moments: Moments,
    part: slice,
) -> tuple[Array, Array]:
    """Fits a linear discriminant of one factor.

    Args:
        moments: Of the rows that it is fitted to, about their mean.
        part: Columns of the code of the factor.

    Returns:
        Weights [d, size], and offsets [size].
    """
    counts = moments.counts[part]
    means = moments.class_means[part]  # [size, d]
    between = (means.T * counts) @ means
    within = moments.squares - between
    total = np.trace(moments.squares)
    level = SHRINKAGE * total / len(within)
    diagonal = np.diag_indices_from(within)
    within[diagonal] += level or 1.0

    solution = linalg.solve(
        within,
        means.T,
        assume_a="pos",
    )
    weights = solution * counts.sum()
    overlaps = np.einsum("kd,dk->k", means, weights)
    offsets = -0.5 * overlaps
    is_fitted = counts > 0
    offsets = np.where(is_fitted, offsets, -np.inf)
    return weights, offsets


def _compare_all(
    parts: Sequence[Part],
    total: float,
) -> tuple[list[Scores], float | None]:
    """Compares the parts of all pairs of factors.

    The mean absolute cosine is over all pairs of values of different factors,
    as `avg_cross_concept_abs_cos` in the code of arXiv 2602.24264.

    Args:
        parts: The parts of the factors.
        total: Variance of all rows.

    Returns:
        A row for each pair, and the mean absolute cosine over all pairs.
    """
    rows = []
    all_cosines = [np.zeros(0)]
    for first, second in itertools.combinations(parts, 2):
        cosines = first.directions @ second.directions.T
        cosines = np.abs(cosines)
        row = _compare_parts(first, second, total)
        row["abs_cosine"] = mean_or_none(cosines)
        rows.append(row)
        all_cosines.append(cosines.ravel())
    joined = np.concatenate(all_cosines)
    is_number = np.isfinite(joined)
    return rows, mean_or_none(joined[is_number])


def _compare_parts(
    first: Part,
    second: Part,
    total: float,
) -> Scores:
    """Computes overlap and least angle, in degrees, of two parts.

    Args:
        first: The part of one factor.
        second: The part of another one.
        total: Variance of all rows, over which two parts may be rounding.
    """
    row: Scores = {
        "cosine": None,
        "angle": None,
    }
    first_norm = np.linalg.norm(first.matrix)
    second_norm = np.linalg.norm(second.matrix)
    scale = first_norm * second_norm
    if scale <= FLOOR * total:
        return row

    product = first.matrix @ second.matrix.T
    norm = np.linalg.norm(product)
    row["cosine"] = float(norm / scale)

    between = first.basis @ second.basis.T
    cosines = np.linalg.svd(between, compute_uv=False)
    largest = cosines.max()
    radians = np.arccos(largest.clip(0, 1))
    row["angle"] = float(np.degrees(radians))
    return row
