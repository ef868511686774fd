"""Second moments of embeddings and one-hot codes, collected in blocks of rows.

Least squares of embeddings on the one-hot codes of all factors, and linear
discriminants of each factor, follow from X^T X, X^T Y and Y^T Y. They are
collected for three sets of rows: ID rows that probes are fitted to, ID rows
that test them, and OOD rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import ndarray as Array
from scipy import sparse

# The sets of rows.
ID = 0
ID_TEST = 1
OOD = 2
SETS = (ID, ID_TEST, OOD)
BLOCK_BYTES = 2**27
MAX_UNITS = 4096
TEST_SHARE = 5  # every fifth ID row tests the probes


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

    @property
    def class_means(self) -> Array:
        """The mean embedding of each class, [K, d]; 0 for absent classes."""
        divisors = np.maximum(self.counts, 1)
        return self.cross / divisors[:, None]

    def about(self, mean: Array) -> Moments:
        """Takes a mean [d] off the embeddings."""
        total = self.count * self.mean
        product = np.outer(total, mean)
        constant = self.count * np.outer(mean, mean)
        squares = self.squares - product - product.T
        squares += constant

        offset = self.counts[:, None] * mean
        cross = self.cross - offset
        return replace(
            self,
            cross=cross,
            squares=squares,
        )

    def fit(self) -> Array:
        """Computes least squares weights [K, d] of the codes."""
        inverse = np.linalg.pinv(self.design, hermitian=True)
        return inverse @ self.cross

    def measure_error(self, parts: Array) -> float:
        """Computes the sum of squared errors of sums of parts.

        Args:
            parts: A vector for each class, [K, d].
        """
        total = np.trace(self.squares)
        overlap = np.vdot(parts, self.cross)
        composed = np.vdot(parts, self.design @ parts)
        error = total - 2 * overlap
        error += composed
        return float(error)


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
            end = start + size
            slices.append(slice(start, end))
            start = end
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
        width = sum(self.sizes)
        offsets = [part.start for part in self.slices]
        columns = index + offsets
        ones = np.ones(index.size)
        ends = np.arange(0, index.size + 1, num_factors)
        return sparse.csr_array(
            (ones, columns.ravel(), ends),
            shape=(count, width),
        )

    def collect(self, others: Sequence[Moments] = ()) -> list[Moments]:
        """Collects the moments of all sets.

        Args:
            others: Moments with the same embeddings, whose products of
                embeddings are used again.
        """
        moments = []
        for number in SETS:
            squares = None
            if others:
                squares = others[number].squares
            subset = self._collect_set(number, squares)
            moments.append(subset)
        return moments

    def _collect_set(self, number: int, known_squares: Array | None) -> Moments:
        """Collects the moments of one set.

        Args:
            number: One of `SETS`.
            known_squares: Products of its embeddings, if they are known.
        """
        width = sum(self.sizes)
        units = self.values.shape[1]
        design = np.zeros((width, width))
        cross = np.zeros((width, units))
        squares = np.zeros((units, units))
        if known_squares is not None:
            squares = known_squares

        for _, codes, values in self.iterate(number):
            products = codes.T @ codes
            design += products.toarray()
            cross += codes.T @ values
            if known_squares is None:
                squares += values.T @ values

        is_member = self.sets == number
        return Moments(
            count=int(is_member.sum()),
            design=design,
            cross=cross,
            squares=squares,
        )


def split_rows(is_ood: Array) -> Array:
    """Deals rows into ID, ID_TEST (a fixed random fifth of ID) and OOD."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(is_ood))
    is_test = order % TEST_SHARE == 0
    sets = np.where(is_test, ID_TEST, ID)
    return np.where(is_ood, OOD, sets)


def reduce_units(values: Array) -> Array:
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
    signs = signs.astype(np.float32)
    rows = np.arange(units)
    return sparse.csr_array(
        (signs, (rows, groups)),
        shape=(units, MAX_UNITS),
    )
