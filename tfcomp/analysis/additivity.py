"""Additive structure of embeddings: sums of parts, one for each factor.

For embeddings y of combinations (f_1 ... f_F), least squares on the one-hot
codes of all factors gives parts a_i(f_i) and the share that they explain:

    y = mean + sum_i a_i(f_i) + rest        R^2 = 1 - |rest|^2 / |y - mean|^2

Everything follows from second moments (`Moments`), which are collected in
blocks of rows: with one-hot codes X, these are X^T X, X^T Y and Y^T Y. Three
sets of rows are kept apart: ID rows that probes are fitted to, ID rows that
test them, and OOD rows.

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

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from tfcomp.analysis.effective_rank import compute_effective_rank
from tfcomp.analysis.features import finite_or_none

MAX_UNITS = 4096
TEST_SHARE = 5  # every fifth ID row tests the probes
ID, ID_TEST, OOD = range(3)
# Eigenvalues below, relative to the largest, are rounding.
FLOOR = 1e-10
SHRINKAGE = 1e-3  # of a covariance toward a multiple of the identity
# Share of a part's variance in the directions that angles compare.
KEPT = 0.99
_BLOCK_BYTES = 2**27
# Largest number of values in the means of all pairs of factors.
_MAX_PAIRS = 2**27
Numbers = dict[str, float | None]


@dataclass(frozen=True)
class Moments:
    """Second moments of one-hot codes and centered embeddings of some rows."""

    design: np.ndarray  # [K, K]
    cross: np.ndarray  # [K, d]
    squares: np.ndarray  # [d, d]

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.design + other.design,
            self.cross + other.cross,
            self.squares + other.squares,
        )

    @property
    def counts(self) -> np.ndarray:
        """Number of rows with each value, [K]."""
        return np.diagonal(self.design)


@dataclass(frozen=True)
class Additivity:
    """Numbers of one layer: its scores, and tables of factors and pairs."""

    scores: Numbers
    parts: list[Numbers]  # by factor
    pairs: list[Numbers]  # by pair of factors


@dataclass(frozen=True)
class Layer:
    """Embeddings [n, d] with grid indices [n, F] and sets [n] of their rows."""

    values: np.ndarray
    index: np.ndarray
    sizes: Sequence[int]
    sets: np.ndarray

    @property
    def slices(self) -> list[slice]:
        """Columns of the one-hot code of each factor."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def iterate(self, chosen: np.ndarray) -> Iterator[tuple]:
        """Yields row numbers, one-hot codes and embeddings of chosen rows."""
        rows = np.flatnonzero(chosen)
        size = max(1, _BLOCK_BYTES // (8 * self.values.shape[1]))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            values = self.values[block].astype(np.float64)
            yield block, self.encode(self.index[block]), values

    def encode(self, index: np.ndarray) -> sparse.csr_array:
        """Returns one-hot codes of indices [n, F], [n, K]."""
        count, width = index.shape
        columns = index + [part.start for part in self.slices]
        starts = np.arange(0, count * width + 1, width)
        data = (np.ones(count * width), columns.ravel(), starts)
        return sparse.csr_array(data, shape=(count, sum(self.sizes)))


def split_rows(is_ood: np.ndarray) -> np.ndarray:
    """Deals rows into ID, ID_TEST (a fixed random fifth of ID) and OOD."""
    order = np.random.default_rng(0).permutation(len(is_ood))
    sets = np.where(order % TEST_SHARE == 0, ID_TEST, ID)
    return np.where(is_ood, OOD, sets)


def reduce_units(values: np.ndarray) -> np.ndarray:
    """Returns embeddings [n, d] with at most `MAX_UNITS` units, centered.

    With fewer rows than units they are rotated into their span, which is exact.
    Otherwise units are added, with random signs, into random groups.
    """
    count, units = values.shape
    if count <= min(units, MAX_UNITS):
        mean = values.mean(axis=0, dtype=np.float64)
        gram = np.zeros((count, count))
        for start in range(0, units, MAX_UNITS):
            part = slice(start, start + MAX_UNITS)
            centered = values[:, part] - mean[part]
            gram += centered @ centered.T
        squares, axes = np.linalg.eigh(gram)
        return axes * np.sqrt(np.maximum(squares, 0.0))
    if units > MAX_UNITS:
        rng = np.random.default_rng(0)
        groups = rng.integers(MAX_UNITS, size=units)
        signs = rng.choice([-1.0, 1.0], units).astype(np.float32)
        places = np.arange(units), groups
        mixing = sparse.csr_array((signs, places), (units, MAX_UNITS))
        values = values @ mixing
    # Rows less the first one: moments of a common offset would be rounding.
    return values - values[:1]


def measure_additivity(
    values: np.ndarray,
    index: np.ndarray,
    sizes: Sequence[int],
    is_ood: np.ndarray,
    seed: int = 0,
) -> tuple[Additivity, Additivity]:
    """Returns the numbers of embeddings [n, d], and those of permuted classes.

    Args:
        values: Embeddings, a row for each combination.
        index: Grid indices of the combinations, [n, F].
        sizes: Numbers of values of the factors.
        is_ood: Which rows are held out.
        seed: Permutes the classes for the chance level.
    """
    layer = Layer(reduce_units(values), index, sizes, split_rows(is_ood))
    order = np.random.default_rng(seed).permutation(len(index))
    permuted = dataclasses.replace(layer, index=index[order])
    moments = collect_moments(layer)
    chance = collect_moments(permuted, [m.squares for m in moments])
    return _summarize(layer, moments), _summarize(permuted, chance)


def collect_moments(
    layer: Layer, squares: Sequence[np.ndarray] = ()
) -> list[Moments]:
    """Collects the moments of ID, ID_TEST and OOD rows.

    The products of embeddings are not computed again if they are given.
    """
    units, width = layer.values.shape[1], sum(layer.sizes)
    moments = []
    for number in (ID, ID_TEST, OOD):
        design = np.zeros((width, width))
        cross = np.zeros((width, units))
        product = squares[number] if squares else np.zeros((units, units))
        for _, codes, values in layer.iterate(layer.sets == number):
            design += (codes.T @ codes).toarray()
            cross += codes.T @ values
            if not squares:
                product += values.T @ values
        moments.append(Moments(design, cross, product))
    return moments


def fit_rows(layer: Layer, chosen: np.ndarray) -> np.ndarray:
    """Fits rows by sums of one vector for each value, [K, units].

    The mean is shared out among the factors.
    """
    width = sum(layer.sizes)
    design = np.zeros((width, width))
    cross = np.zeros((width, layer.values.shape[1]))
    for _, codes, values in layer.iterate(chosen):
        design += (codes.T @ codes).toarray()
        cross += codes.T @ values
    total = cross[layer.slices[0]].sum(axis=0)
    mean = total / np.count_nonzero(chosen)
    cross -= np.diagonal(design)[:, None] * mean
    parts = np.linalg.pinv(design, hermitian=True) @ cross
    return parts + mean / len(layer.sizes)


def _center(moments: Moments, layer: Layer, mean: np.ndarray) -> Moments:
    """Returns the moments about a mean [d]."""
    first = layer.slices[0]
    count, total = moments.counts[first].sum(), moments.cross[first].sum(axis=0)
    cross = moments.cross - moments.counts[:, None] * mean
    both = np.outer(total, mean)
    squares = moments.squares - both - both.T + count * np.outer(mean, mean)
    return Moments(moments.design, cross, squares)


def _find_mean(moments: Moments, layer: Layer) -> np.ndarray:
    first = layer.slices[0]
    count = max(moments.counts[first].sum(), 1)
    return moments.cross[first].sum(axis=0) / count


def fit_parts(moments: Moments) -> np.ndarray:
    """Fits the parts of centered moments, [K, d]; 0 for absent values."""
    return np.linalg.pinv(moments.design, hermitian=True) @ moments.cross


def _summarize(layer: Layer, moments: Sequence[Moments]) -> Additivity:
    whole = moments[ID] + moments[ID_TEST] + moments[OOD]
    whole = _center(whole, layer, _find_mean(whole, layer))
    parts = fit_parts(whole)
    # The rest is orthogonal to the codes.
    rest = whole.squares - parts.T @ whole.design @ parts
    weights, accuracy = _probe(layer, moments)
    basis = _find_basis(weights, 1e-6)
    scores: Numbers = {
        "additive_r2": _explain(rest, whole.squares),
        "additive_r2_whitened": _explain_whitened(
            rest, whole.squares, len(layer.index)
        ),
        "additive_r2_probes": _explain(
            basis.T @ rest @ basis, basis.T @ whole.squares @ basis
        ),
        **_share_interactions(layer, whole, rest),
        **_compose(layer, moments),
    }
    for name, values in accuracy.items():
        scores[f"accuracy_{name}"] = finite_or_none(float(np.mean(values)))
    factors, pairs = _compare_parts(layer, whole, parts)
    for number, row in enumerate(factors):
        for name, values in accuracy.items():
            row[f"accuracy_{name}"] = finite_or_none(values[number])
    return Additivity(scores, factors, pairs)


def _explain(rest: np.ndarray, squares: np.ndarray) -> float | None:
    total = np.trace(squares)
    return finite_or_none(1 - np.trace(rest) / total) if total > 0 else None


def _explain_whitened(
    rest: np.ndarray, squares: np.ndarray, count: int
) -> float | None:
    """Averages R^2 over components; None if they are as many as rows allow."""
    values, axes = np.linalg.eigh(squares)
    kept = values > FLOOR * max(values[-1], 0.0)
    if not 0 < kept.sum() < count - 1:
        return None
    axes = axes[:, kept]
    shares = np.einsum("ij,ij->j", axes, rest @ axes) / values[kept]
    return finite_or_none(1 - shares.mean())


def _compose(layer: Layer, moments: Sequence[Moments]) -> Numbers:
    """Rates the parts of ID rows by the error of the ID mean."""
    known = moments[ID] + moments[ID_TEST]
    mean = _find_mean(known, layer)
    parts = fit_parts(_center(known, layer, mean))
    numbers: Numbers = {}
    for name, part in (("id", known), ("ood", moments[OOD])):
        part = _center(part, layer, mean)
        total = np.trace(part.squares)
        error = total - 2 * np.vdot(parts, part.cross)
        error += np.vdot(parts, part.design @ parts)
        ratio = error / total if total > 0 else None
        numbers[f"composed_{name}"] = finite_or_none(ratio)
    return numbers


def _share_interactions(
    layer: Layer, whole: Moments, rest: np.ndarray
) -> Numbers:
    """Returns shares of variance by the number of factors that interact.

    Pairs and higher orders are told apart on complete grids alone.
    """
    total, sizes = np.trace(whole.squares), layer.sizes
    if not total > 0:
        return dict.fromkeys(("interaction", "pairs", "higher"))
    numbers: Numbers = {"interaction": float(np.trace(rest) / total)}
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    cells = sum(sizes[a] * sizes[b] for a, b in pairs)
    shape = tuple(sizes)
    places = np.ravel_multi_index(layer.index.T, shape)
    is_complete = len(np.unique(places)) == len(places) == math.prod(shape)
    if not is_complete or cells * layer.values.shape[1] > _MAX_PAIRS:
        return numbers | {"pairs": None, "higher": None}
    share = sum(_measure_pair(layer, whole, *pair) for pair in pairs) / total
    higher = max(numbers["interaction"] - share, 0.0)  # but for an ulp
    return numbers | {"pairs": float(share), "higher": float(higher)}


def _measure_pair(layer: Layer, whole: Moments, a: int, b: int) -> float:
    """Returns the sum of squares of the interaction of two factors."""
    every, second = np.ones(len(layer.index), bool), layer.sizes[b]
    sums = np.zeros((layer.sizes[a] * second, layer.values.shape[1]))
    for rows, _, values in layer.iterate(every):
        cells = layer.index[rows, a] * second + layer.index[rows, b]
        data = (np.ones(len(rows)), (cells, np.arange(len(rows))))
        sums += sparse.csr_array(data, (len(sums), len(rows))) @ values
    count = len(layer.index) / len(sums)  # of a cell
    sums -= sums.mean(axis=0)
    squares = np.sum(sums**2) / count
    for column in (a, b):
        part = layer.slices[column]
        means = whole.cross[part] ** 2 / whole.counts[part, None]
        squares -= means.sum()
    return max(float(squares), 0.0)


def _probe(
    layer: Layer, moments: Sequence[Moments]
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Fits linear discriminants of all factors to ID rows.

    Returns:
        Their weights [d, K], and the accuracy by factor on ID_TEST and OOD
        rows, NaN without rows.
    """
    known = _center(moments[ID], layer, mean := _find_mean(moments[ID], layer))
    fits = [_fit_discriminant(known, part) for part in layer.slices]
    weights = np.hstack([weight for weight, _ in fits])
    bias = np.concatenate([offset for _, offset in fits])
    accuracy = {}
    for name, number in (("id", ID_TEST), ("ood", OOD)):
        chosen = layer.sets == number
        hits = np.zeros(len(layer.sizes))
        for rows, _, values in layer.iterate(chosen):
            votes = (values - mean) @ weights + bias
            for column, part in enumerate(layer.slices):
                best = votes[:, part].argmax(axis=1)
                hits[column] += np.sum(best == layer.index[rows, column])
        count = chosen.sum()
        accuracy[name] = (hits / count if count else hits * np.nan).tolist()
    return weights, accuracy


def _fit_discriminant(
    moments: Moments, part: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Returns weights [d, size] and offsets of a linear discriminant."""
    counts = moments.counts[part]
    means = moments.cross[part] / np.maximum(counts, 1)[:, None]
    within = moments.squares - (means.T * counts) @ means
    level = SHRINKAGE * np.trace(moments.squares) / len(within)
    within[np.diag_indices_from(within)] += level or 1.0
    weights = linalg.solve(within, means.T, assume_a="pos") * counts.sum()
    offsets = -0.5 * np.einsum("kd,dk->k", means, weights)
    return weights, np.where(counts > 0, offsets, -np.inf)


def _find_basis(directions: np.ndarray, tolerance: float) -> np.ndarray:
    """Returns an orthonormal basis [d, r] of the span of columns."""
    axes, lengths, _ = np.linalg.svd(directions, full_matrices=False)
    return axes[:, lengths > tolerance * lengths.max(initial=0.0)]


def _compare_parts(
    layer: Layer, whole: Moments, parts: np.ndarray
) -> tuple[list[Numbers], list[Numbers]]:
    """Returns share and rank of each part, and the angles of all pairs."""
    total = max(np.trace(whole.squares), 1e-300)
    matrices, bases = [], []
    rows: list[Numbers] = []
    for columns in layer.slices:
        counts = whole.counts[columns]
        known = parts[columns][counts > 0]
        counts = counts[counts > 0]
        centered = known - np.average(known, axis=0, weights=counts)
        matrix = centered * np.sqrt(counts)[:, None]
        axes, squares = _decompose(matrix)
        share = np.cumsum(squares) / (squares.sum() or 1.0)
        matrices.append(matrix)
        bases.append(axes[:, : np.searchsorted(share, KEPT) + 1])
        rank = float(compute_effective_rank(squares))
        rows.append({"share": float(squares.sum() / total), "rank": rank})
    pairs: list[Numbers] = []
    for a, b in itertools.combinations(range(len(rows)), 2):
        lengths = np.linalg.norm(matrices[a]) * np.linalg.norm(matrices[b])
        overlap = np.linalg.norm(matrices[a] @ matrices[b].T)
        cosines = np.linalg.svd(bases[a].T @ bases[b], compute_uv=False)
        angle = np.degrees(np.arccos(cosines.max(initial=0.0).clip(0, 1)))
        is_known = lengths > FLOOR * total
        pairs.append(
            {
                "cosine": float(overlap / lengths) if is_known else None,
                "angle": float(angle) if is_known else None,
            }
        )
    return rows, pairs


def _decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns principal directions [d, r] and squared singular values."""
    _, lengths, axes = np.linalg.svd(matrix, full_matrices=False)
    return axes.T, lengths**2
