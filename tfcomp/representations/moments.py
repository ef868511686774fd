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
        """Takes a mean off the embeddings.

        Args:
            mean: A vector, [d].
        """
        total = self.count * self.mean
        product = np.outer(total, mean)
        mean_squares = np.outer(mean, mean)
        squares = self.squares - product - product.T
        squares += self.count * mean_squares

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
        products = self.design @ parts
        composed = np.vdot(parts, products)
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
        ends = np.cumsum(self.sizes)
        starts = ends - self.sizes
        return list(map(slice, starts, ends))

    def iterate(self, number: int) -> Iterator[tuple[Array, Any, Array]]:
        """Goes through the rows of a set, in blocks.

        Args:
            number: One of `SETS`.

        Yields:
            Grid indices [b, F], one-hot codes [b, K] (sparse) and embeddings
            [b, d], float64.
        """
        is_member = self.sets == number
        rows = np.flatnonzero(is_member)
        units = self.values.shape[1]
        row_bytes = 8 * units
        size = max(1, BLOCK_BYTES // row_bytes)
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            index = self.index[block]
            codes = self._encode(index)
            values = self.values[block]
            values = values.astype(np.float64)
            yield index, codes, values

    def _encode(self, index: Array) -> Any:
        """Makes sparse one-hot codes [b, K] of grid indices [b, F]."""
        count, num_factors = index.shape
        width = sum(self.sizes)
        offsets = [part.start for part in self.slices]
        columns = index + offsets
        columns = columns.ravel()
        size = len(columns)
        ones = np.ones(size)
        ends = np.arange(0, size + 1, num_factors)
        return sparse.csr_array(
            (ones, columns, ends),
            shape=(count, width),
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
            subset = Moments(
                count=int(is_member.sum()),
                design=design,
                cross=cross,
                squares=squares,
            )
            moments.append(subset)
        return moments


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
        shifted = values.astype(np.float64)
        shifted = shifted - values[:1]
        gram = shifted @ shifted.T
        squares, axes = np.linalg.eigh(gram)
        squares = np.maximum(squares, 0.0)
        lengths = np.sqrt(squares)
        return axes * lengths

    if units > MAX_UNITS:
        groups = _make_groups(units)
        values = values @ groups
    first = values[:1]
    return values - first


def _make_groups(units: int) -> Any:
    """Makes a sparse matrix that adds random units, with random signs."""
    rng = np.random.default_rng(0)
    groups = rng.integers(MAX_UNITS, size=units)
    signs = rng.choice([-1.0, 1.0], units)
    signs = signs.astype(np.float32)
    rows = np.arange(units)
    places = (rows, groups)
    return sparse.csr_array(
        (signs, places),
        shape=(units, MAX_UNITS),
    )
