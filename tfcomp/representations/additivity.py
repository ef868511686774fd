"""Additive structure of embeddings: sums of parts, one for each factor.

For embeddings y of combinations (f_1 ... f_F), least squares on the one-hot
codes of all factors gives parts a_i(f_i) and the share that they explain:

    y = mean + sum_i a_i(f_i) + rest        R^2 = 1 - |rest|^2 / |y - mean|^2

Everything follows from second moments of one-hot codes and embeddings, X^T X,
X^T Y and Y^T Y. They are collected in blocks of rows, for three sets of rows:
ID rows that probes are fitted to, ID rows that test them, and OOD rows.

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

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array
from scipy import linalg, sparse

from tfcomp.metrics import features
from tfcomp.metrics.features import Arrays, Scores, finite_or_none

# The sets of rows.
ID = 0
ID_TEST = 1
OOD = 2
SETS = (ID, ID_TEST, OOD)
BLOCK_BYTES = 2**27
MAX_UNITS = 4096
TEST_SHARE = 5  # every fifth ID row tests the probes
# Eigenvalues below, relative to the largest, are rounding.
FLOOR = 1e-10
SHRINKAGE = 1e-3  # of a covariance toward a multiple of the identity
# Share of a part's variance in the directions that angles compare.
KEPT = 0.99


@dataclass(frozen=True)
class Moments:
    """Second moments of one-hot codes [K] and embeddings [d] of some rows."""

    count: int
    design: Array  # [K, K]
    cross: Array  # [K, d]
    squares: Array  # [d, d]

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            count=self.count + other.count,
            design=self.design + other.design,
            cross=self.cross + other.cross,
            squares=self.squares + other.squares,
        )

    @property
    def counts(self) -> Array:
        """Rows of each class, [K]."""
        return np.diagonal(self.design)

    @property
    def mean(self) -> Array:
        """The mean embedding, [d]."""
        total = self.cross.sum(axis=0)
        count = max(self.counts.sum(), 1)
        return total / count

    def about(self, mean: Array) -> Moments:
        """Takes a mean [d] off the embeddings."""
        product = np.outer(self.count * self.mean, mean)
        squares = self.squares - product - product.T
        squares += self.count * np.outer(mean, mean)
        offset = self.counts[:, None] * mean
        return replace(
            self,
            cross=self.cross - offset,
            squares=squares,
        )

    def fit(self) -> Array:
        """Computes least squares weights [K, d] of the codes."""
        inverse = np.linalg.pinv(self.design, hermitian=True)
        return inverse @ self.cross


@dataclass(frozen=True)
class Layer:
    """Embeddings [n, d] with grid indices [n, F] and sets [n] of their rows."""

    values: Array
    index: Array
    sizes: Sequence[int]
    sets: Array

    @property
    def slices(self) -> list[slice]:
        """Columns of the code of each factor."""
        start = 0
        slices = []
        for size in self.sizes:
            slices.append(slice(start, start + size))
            start += size
        return slices

    def iterate(self, number: int) -> Iterator[tuple[Array, Any, Array]]:
        """Goes through the rows of a set, in blocks.

        Args:
            number: One of `SETS`.

        Yields:
            Grid indices [b, F], one-hot codes [b, K] (sparse) and embeddings
            [b, d], float64.
        """
        rows = np.flatnonzero(self.sets == number)
        row_bytes = 8 * self.values.shape[1]
        size = max(1, BLOCK_BYTES // row_bytes)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            index = self.index[block]
            values = self.values[block]
            codes = self._encode(index)
            yield index, codes, values.astype(np.float64)

    def _encode(self, index: Array) -> Any:
        """Makes sparse one-hot codes [b, K] of grid indices [b, F]."""
        count, num_factors = index.shape
        offsets = [part.start for part in self.slices]
        columns = index + offsets
        ones = np.ones(index.size)
        ends = np.arange(0, index.size + 1, num_factors)
        return sparse.csr_array(
            (ones, columns.ravel(), ends),
            (count, sum(self.sizes)),
        )

    def collect(self, others: Sequence[Moments] = ()) -> list[Moments]:
        """Collects the moments of all sets.

        Args:
            others: Moments with the same embeddings, whose products of
                embeddings are used again.
        """
        width = sum(self.sizes)
        units = self.values.shape[1]
        moments = []
        for number in SETS:
            design = np.zeros((width, width))
            cross = np.zeros((width, units))
            squares = np.zeros((units, units))
            for _, codes, values in self.iterate(number):
                products = codes.T @ codes
                design += products.toarray()
                cross += codes.T @ values
                if not others:
                    squares += values.T @ values
            if others:
                squares = others[number].squares
            is_member = self.sets == number
            moments.append(
                Moments(
                    count=int(is_member.sum()),
                    design=design,
                    cross=cross,
                    squares=squares,
                )
            )
        return moments


@dataclass(frozen=True)
class Additivity:
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

    Args:
        values: Embeddings, [n, d].
        index: Grid indices of their combinations, [n, F].
        sizes: Numbers of values of the factors.
        is_ood: Which combinations are held out, [n].

    Returns:
        The numbers, and the same with permuted classes.
    """
    layer = Layer(
        values=_reduce_units(values),
        index=index,
        sizes=sizes,
        sets=split_rows(is_ood),
    )
    moments = layer.collect()
    given = _summarize(layer, moments)

    rng = np.random.default_rng(0)
    order = rng.permutation(len(index))
    permuted_layer = replace(layer, index=index[order])
    moments = permuted_layer.collect(moments)
    return given, _summarize(permuted_layer, moments)


def split_rows(is_ood: Array) -> Array:
    """Deals rows into ID, ID_TEST (a fixed random fifth of ID) and OOD."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(is_ood))
    is_test = order % TEST_SHARE == 0
    sets = np.where(is_test, ID_TEST, ID)
    return np.where(is_ood, OOD, sets)


def _reduce_units(values: Array) -> Array:
    """Reduces embeddings [n, d] to `MAX_UNITS` units at most.

    Few rows are rotated, exactly; many units are added in random groups.
    """
    # Less the first row: moments of a common offset would be rounding.
    count, units = values.shape
    if count <= min(units, MAX_UNITS):
        shifted = values.astype(np.float64) - values[:1]
        squares, axes = np.linalg.eigh(shifted @ shifted.T)
        lengths = np.sqrt(np.maximum(squares, 0.0))
        return axes * lengths

    if units > MAX_UNITS:
        values = values @ _make_groups(units)
    return values - values[:1]


def _make_groups(units: int) -> Any:
    """Makes a sparse matrix that adds random units, with random signs."""
    rng = np.random.default_rng(0)
    groups = rng.integers(MAX_UNITS, size=units)
    signs = rng.choice([-1.0, 1.0], units)
    places = (np.arange(units), groups)
    return sparse.csr_array(
        (signs.astype(np.float32), places),
        (units, MAX_UNITS),
    )


def _summarize(layer: Layer, moments: Sequence[Moments]) -> Additivity:
    """Computes all numbers of a layer from its moments, by set."""
    total = moments[ID] + moments[ID_TEST] + moments[OOD]
    total = total.about(total.mean)
    effects = total.fit()
    # The rest is orthogonal to the codes.
    rest = total.squares - effects.T @ total.design @ effects
    scores: Scores = {
        "additive_r2": _explain(rest, total.squares),
        "additive_r2_whitened": _explain_whitened(rest, total),
    }

    weights, accuracy = _probe(layer, moments)
    axes = _span_probes(weights)
    scores["additive_r2_probes"] = _explain(
        axes.T @ rest @ axes,
        axes.T @ total.squares @ axes,
    )
    scores |= _compose(moments)

    parts = []
    for columns in layer.slices:
        part = _describe_part(effects[columns], total.counts[columns])
        parts.append(part)
    variance = max(np.trace(total.squares), 1e-300)
    rows = [_summarize_part(part, variance) for part in parts]
    pairs = []
    for first, second in itertools.combinations(parts, 2):
        pairs.append(_compare_parts(first, second, variance))

    for name, hits in accuracy.items():
        mean = float(hits.mean())
        scores[name] = finite_or_none(mean)
        for row, share in zip(rows, hits, strict=True):
            row[name] = finite_or_none(share)
    return Additivity(scores, rows, pairs)


def _span_probes(weights: Array) -> Array:
    """Finds an orthonormal basis of the span of weights [d, K], [d, rank]."""
    axes, lengths, _ = np.linalg.svd(weights, full_matrices=False)
    largest = lengths.max(initial=0.0)
    return axes[:, lengths > 1e-6 * largest]


class Part(NamedTuple):
    """The part of one factor, less its mean."""

    matrix: Array  # a row for each value, by the root of its count, [size, d]
    squares: Array  # of its singular values
    basis: Array  # directions of `KEPT` of its variance, [k, d]


def _describe_part(part: Array, counts: Array) -> Part:
    """Finds the principal directions of a part.

    Args:
        part: By `Moments.fit`, [size, d].
        counts: Rows of each value, [size].
    """
    mean = counts @ part / counts.sum()
    roots = np.sqrt(counts)
    matrix = (part - mean) * roots[:, None]
    _, lengths, axes = np.linalg.svd(matrix, full_matrices=False)

    squares = lengths**2
    total = squares.sum() or 1.0
    share = np.cumsum(squares) / total
    num_kept = np.searchsorted(share, KEPT) + 1
    return Part(matrix, squares, basis=axes[:num_kept])


def _summarize_part(part: Part, total: float) -> Scores:
    """Computes the share of a part in the variance of all, and its rank."""
    rank = features.compute_effective_rank(part.squares)
    share = part.squares.sum() / total
    return {
        "share": float(share),
        "rank": float(rank),
    }


def _explain(rest: Array, squares: Array) -> float | None:
    """Computes R^2 from moments [d, d] of the rest, and of all."""
    total = np.trace(squares)
    if not total > 0:
        return None
    share = np.trace(rest) / total
    return finite_or_none(1 - share)


def _explain_whitened(rest: Array, total: Moments) -> float | None:
    """Averages R^2 over components; None if rows do not exceed components.

    Args:
        rest: Second moments of the rest, [d, d].
        total: Moments of all rows.
    """
    values, axes = np.linalg.eigh(total.squares)
    largest = max(values[-1], 0.0)
    is_kept = values > FLOOR * largest
    num_kept = is_kept.sum()
    if num_kept == 0 or num_kept >= total.count - 1:
        return None

    axes = axes[:, is_kept]
    rest_squares = np.einsum("ij,ij->j", axes, rest @ axes)
    shares = rest_squares / values[is_kept]
    return finite_or_none(1 - shares.mean())


def _compose(moments: Sequence[Moments]) -> Scores:
    """Computes errors of composed embeddings over errors of the ID mean."""
    known = moments[ID] + moments[ID_TEST]
    parts = known.about(known.mean).fit()
    subsets = {
        "id": known,
        "ood": moments[OOD],
    }
    numbers: Scores = {}
    for name, subset in subsets.items():
        centered = subset.about(known.mean)
        total = np.trace(centered.squares)
        overlap = np.vdot(parts, centered.cross)
        composed = np.vdot(parts, centered.design @ parts)
        error = total - 2 * overlap
        error += composed
        ratio = None
        if total > 0:
            ratio = finite_or_none(error / total)
        numbers[f"composed_{name}"] = ratio
    return numbers


def _probe(layer: Layer, moments: Sequence[Moments]) -> tuple[Array, Arrays]:
    """Fits discriminants to ID rows, and tests them.

    Returns:
        Weights [d, K], and accuracies [F] by name.
    """
    mean = moments[ID].mean
    known = moments[ID].about(mean)
    weights = []
    offsets = []
    for part in layer.slices:
        weight, offset = _fit_discriminant(known, part)
        weights.append(weight)
        offsets.append(offset)
    all_weights = np.hstack(weights)  # [d, K]
    all_offsets = np.concatenate(offsets)  # [K]

    accuracy = {}
    tested = {
        "id": ID_TEST,
        "ood": OOD,
    }
    for name, number in tested.items():
        hits = np.zeros(len(layer.sizes))
        for index, _, values in layer.iterate(number):
            votes = (values - mean) @ all_weights
            votes = votes + all_offsets  # [b, K]
            for factor, part in enumerate(layer.slices):
                best = votes[:, part].argmax(axis=1)
                is_right = best == index[:, factor]
                hits[factor] += is_right.sum()
        count = moments[number].count or np.nan
        accuracy[f"accuracy_{name}"] = hits / count
    return all_weights, accuracy


def _fit_discriminant(moments: Moments, part: slice) -> tuple[Array, Array]:
    """Fits a linear discriminant of one factor.

    Args:
        moments: Of the rows that it is fitted to, about their mean.
        part: Columns of the code of the factor.

    Returns:
        Weights [d, size], and offsets [size].
    """
    counts = moments.counts[part]
    divisors = np.maximum(counts, 1)
    means = moments.cross[part] / divisors[:, None]  # [size, d]
    between = (means.T * counts) @ means
    within = moments.squares - between
    total = np.trace(moments.squares)
    level = SHRINKAGE * total / len(within)
    diagonal = np.diag_indices_from(within)
    within[diagonal] += level or 1.0

    solution = linalg.solve(within, means.T, assume_a="pos")
    weights = solution * counts.sum()
    offsets = -0.5 * np.einsum("kd,dk->k", means, weights)
    offsets = np.where(counts > 0, offsets, -np.inf)
    return weights, offsets


def _compare_parts(first: Part, second: Part, total: float) -> Scores:
    """Computes overlap and least angle, in degrees, of two parts.

    Args:
        first: The part of one factor.
        second: The part of another one.
        total: Variance of all rows, over which two parts may be rounding.
    """
    first_norm = np.linalg.norm(first.matrix)
    second_norm = np.linalg.norm(second.matrix)
    scale = first_norm * second_norm
    if scale <= FLOOR * total:
        return {
            "cosine": None,
            "angle": None,
        }

    product = first.matrix @ second.matrix.T
    overlap = np.linalg.norm(product) / scale
    between = first.basis @ second.basis.T
    cosines = np.linalg.svd(between, compute_uv=False)
    largest = cosines.max().clip(0, 1)
    angle = np.degrees(np.arccos(largest))
    return {
        "cosine": float(overlap),
        "angle": float(angle),
    }
