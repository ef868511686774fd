"""Combinations of factors that a training set determines.

Let f be any function of the factors without interactions of more than k of
them (the order): a sum of functions of k factors each. A combination is
*certified* at the order k if the values of f on the training set determine
its value there. In the terms of the ANOVA design, whose columns are the units
of single values and of combinations of up to k values: if its row lies in the
row space of the training rows. At order 1 that is the affine hull of one-hot
codes (compositional risk minimization, Mahajan, Pezeshki and others).

f is written by its values on *anchored cells*, the combinations that differ
from a fixed one, the anchor, in at most k factors. For a combination that
differs in s factors, those in S_z,

    f(z) = sum over S in S_z, |S| = j <= k of
           (-1)^(k - j) C(s - j - 1, k - j) f(z in S, the anchor elsewhere)

Values of trained anchored cells are known, and so is one that is the only
unknown of a training combination. Few are left as a rule, of which the
training combinations are equations: their row space is kept modulo a prime
(`tfcomp.datasets.row_space`). Membership is tested on random functions that
vanish on the training set: where all of them vanish, every one does, but for
a chance of 2^-69.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfcomp.datasets.row_space import PRIME, RowSpace

BLOCK = 2**16  # combinations at a time
ROWS = 512  # equations that enter the row space at a time
TESTS = 3  # random functions
ANCHORS = 8  # candidates
MAX_TABLE = 10**8  # combinations of the values of k factors
MAX_DENSE = 5 * 10**7  # numbers of a row space


@dataclass(frozen=True)
class Certificate:
    """Combinations that are determined if at most `order` factors interact.

    A mask of all combinations [n], and a smallest set of further ones, their
    row numbers, with which all are determined.
    """

    order: int
    certified: np.ndarray
    images: np.ndarray


def certify(
    train: np.ndarray, every: np.ndarray, order: int
) -> Certificate | None:
    """Returns the certificate of a training set for the rows of `every`.

    Both tables are classes, int [n, F] and [m, F]; -1 for an absent factor
    counts as a value. None if the equations would not fit into memory.
    """
    points = np.concatenate([train, every]).astype(np.int32)
    points -= points.min(axis=0, initial=0)
    sizes = points.max(axis=0, initial=0) + 1
    points, sizes = points[:, sizes > 1], sizes[sizes > 1].tolist()
    most = min(order, len(sizes))
    if math.prod(sorted(sizes)[len(sizes) - most :]) > MAX_TABLE:
        return None
    return _Design(points, len(train), order, sizes).certify()


class _Design:
    """Combinations as equations between the values of anchored cells."""

    def __init__(
        self, points: np.ndarray, num_train: int, order: int, sizes: list[int]
    ) -> None:
        # Classes of the training and then of all combinations.
        self.points, self.num_train, self.order = points, num_train, order
        differs = points != _choose_anchor(points[:num_train], order)
        # In how many factors each differs from the anchor.
        self.support = differs.sum(axis=1)
        # Of every set of at most k factors, the column of the value of each
        # anchored cell; -1 for those that never occur.
        self.tables: dict[tuple[int, ...], np.ndarray] = {}
        columns = 0
        for count in range(min(order, len(sizes)) + 1):
            for subset in itertools.combinations(range(len(sizes)), count):
                rows = differs[:, subset].all(axis=1)
                table = np.full([sizes[i] for i in subset], -1, np.int32)
                table[tuple(points[rows][:, subset].T)] = 0
                found = table == 0
                table[found] = columns + np.arange(found.sum())
                self.tables[subset] = table
                columns += int(found.sum())
        # Which columns are not known yet; the last, false, stands for none.
        self.unknown = np.arange(columns + 1) < columns

    def certify(self) -> Certificate | None:
        every = np.arange(self.num_train, len(self.points))
        active = self._peel(np.arange(self.num_train))
        cells = self._find_cells(every)
        # Columns that elimination sees; the others are in no equation of
        # training, and an image of each exists.
        seen = self.unknown & (cells < 0)
        for _, columns, _ in self._list_terms(active):
            seen[columns] = True
        seen &= self.unknown
        self.local = np.flatnonzero(seen)
        size = min(len(active) + int((cells < 0).sum()), len(self.local))
        if size * len(self.local) > MAX_DENSE:
            return None
        self.space = RowSpace(len(self.local))
        self._absorb(active)
        certified = ~self._test(every)
        free = self.unknown.copy()
        free[self.local[self.space.pivots]] = False
        simple = np.flatnonzero(free & (cells >= 0))
        self.unknown[simple] = False
        # Their values are known now: null vectors vanish there.
        is_known = np.isin(self.local, simple)
        if is_known.any():
            self.space.add(np.eye(len(self.local))[is_known])
        others = self._absorb(every[self._test(every)])
        images = np.concatenate([cells[simple], others]).astype(int)
        return Certificate(self.order, certified, images - self.num_train)

    def _peel(self, rows: np.ndarray) -> np.ndarray:
        """Solves equations with one unknown; returns those with more."""
        while True:
            counts = np.zeros(len(rows), int)
            sums = np.zeros(len(rows), int)
            for part, columns, _ in self._list_terms(rows):
                found = self.unknown[columns]
                counts[part] += found
                sums[part] += np.where(found, columns, 0)
            self.unknown[sums[counts == 1]] = False
            rows = rows[counts > 1]
            if not (counts == 1).any():
                return rows

    def _find_cells(self, rows: np.ndarray) -> np.ndarray:
        """Returns the row of each anchored cell, -1 if none is."""
        cells = np.full(len(self.unknown), -1)
        rows = rows[self.support[rows] <= self.order]
        for part, columns, _ in self._list_terms(rows):
            cells[columns] = rows[part]
        cells[-1] = -1
        return cells

    def _absorb(self, rows: np.ndarray) -> np.ndarray:
        """Adds equations to the row space; returns the independent ones."""
        rng, taken = np.random.default_rng(1), [np.empty(0, int)]
        while len(rows := rows[self._test(rows)]):
            chosen = rows
            if len(rows) > ROWS:
                chosen = np.sort(rng.choice(rows, ROWS, replace=False))
            taken.append(chosen[self.space.add(self._write(chosen))])
        return np.concatenate(taken)

    def _write(self, rows: np.ndarray) -> np.ndarray:
        """Returns equations as dense rows, [n, local columns]."""
        place = np.full(len(self.unknown), -1)
        place[self.local] = np.arange(len(self.local))
        dense = np.zeros((len(rows), len(self.local) + 1))
        for part, columns, numbers in self._list_terms(rows):
            places = np.where(self.unknown[columns], place[columns], -1)
            dense[np.arange(len(rows))[part], places] += numbers
        return dense[:, :-1]

    def _test(self, rows: np.ndarray) -> np.ndarray:
        """Returns rows [n] where a function of the null space is not 0."""
        rng = np.random.default_rng(0)
        values = np.zeros((len(self.unknown), TESTS), np.int64)
        size = (self.unknown.sum(), TESTS)
        values[self.unknown] = rng.integers(0, PRIME, size)
        values[self.local] = self.space.draw_null(TESTS, rng)
        values[~self.unknown] = 0
        totals = np.zeros((len(rows), TESTS), np.int64)
        for part, columns, numbers in self._list_terms(rows):
            totals[part] += numbers[:, None] * values[columns]
        return np.any(totals % PRIME, axis=1)

    def _list_terms(
        self, rows: np.ndarray
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yields terms of equations: block of rows, columns, coefficients."""
        numbers = _list_coefficients(self.points.shape[1], self.order)
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            points, support = (
                self.points[rows[part]].T,
                self.support[rows[part]],
            )
            for subset, table in self.tables.items():
                columns = table[tuple(points[list(subset)])]
                found = numbers[support, len(subset)]
                yield part, np.where(found != 0, columns, -1), found


def _choose_anchor(points: np.ndarray, order: int) -> np.ndarray:
    """Returns a combination that training differs from in few factors."""
    if not points.size:
        return np.zeros(points.shape[1], points.dtype)
    common = [np.bincount(column).argmax() for column in points.T]
    rng = np.random.default_rng(0)
    others = points[rng.integers(0, len(points), ANCHORS)]
    return max(
        np.array([common, *others]),
        key=lambda a: ((points != a).sum(axis=1) <= order).sum(),
    )


def _list_coefficients(factors: int, order: int) -> np.ndarray:
    """Returns coefficients by s and j, int [F + 1, k + 1]; 0 for j > s."""
    numbers = np.zeros((factors + 1, order + 1), np.int64)
    for s, j in itertools.product(range(factors + 1), range(order + 1)):
        numbers[s, j] = s == j
        if s > order:
            sign = (-1) ** (order - j)
            numbers[s, j] = sign * math.comb(s - j - 1, order - j)
    return numbers
