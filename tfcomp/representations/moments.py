"""Second moments of one-hot codes and embeddings, X^T X, X^T Y and Y^T Y.

They are collected in blocks of rows, for three sets of rows: ID rows that
probes are fitted to, ID rows that test them, and OOD rows.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy import ndarray as Array
from scipy import sparse

ID, ID_TEST, OOD = SETS = range(3)
BLOCK_BYTES = 2**27


@dataclass(frozen=True)
class Moments:
    """Second moments of one-hot codes [K] and embeddings [d] of some rows."""

    count: int
    design: Array  # [K, K]
    cross: Array  # [K, d]
    squares: Array  # [d, d]

    def __add__(self, other: "Moments") -> "Moments":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Moments(*(mine + theirs for mine, theirs in pairs))

    @property
    def counts(self) -> Array:
        """Rows of each class, [K]."""
        return np.diagonal(self.design)

    @property
    def mean(self) -> Array:
        """The mean embedding, [d]."""
        return self.cross.sum(axis=0) / max(self.counts.sum(), 1)

    def about(self, mean: Array) -> "Moments":
        """Returns the moments less a mean."""
        both = np.outer(self.count * self.mean, mean)
        squares = self.squares - both - both.T
        squares += self.count * np.outer(mean, mean)
        cross = self.cross - self.counts[:, None] * mean
        return replace(self, cross=cross, squares=squares)

    def fit(self) -> Array:
        """Returns least squares weights [K, d] of the codes."""
        return np.linalg.pinv(self.design, hermitian=True) @ self.cross


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
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def iterate(self, number: int) -> Iterator[tuple]:
        """Yields indices, one-hot codes and embeddings of a set, in blocks."""
        rows = np.flatnonzero(self.sets == number)
        size = max(1, BLOCK_BYTES // (8 * self.values.shape[1]))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            index = self.index[block]
            columns = index + [part.start for part in self.slices]
            starts = np.arange(0, index.size + 1, index.shape[1])
            data = np.ones(index.size), columns.ravel(), starts
            codes = sparse.csr_array(data, (len(block), sum(self.sizes)))
            yield index, codes, self.values[block].astype(np.float64)

    def collect(self, known: Sequence[Moments] = ()) -> list[Moments]:
        """Collects the moments of all sets, but products that are known."""
        width, units = sum(self.sizes), self.values.shape[1]
        moments = []
        for number in SETS:
            design, cross = np.zeros((width, width)), np.zeros((width, units))
            squares = np.zeros((units, units))
            for _, codes, values in self.iterate(number):
                design += (codes.T @ codes).toarray()
                cross += codes.T @ values
                if not known:
                    squares += values.T @ values
            squares = known[number].squares if known else squares
            count = int(np.sum(self.sets == number))
            moments.append(Moments(count, design, cross, squares))
        return moments
