"""Row spaces of integer matrices, exactly, modulo a prime.

A rank modulo a prime is never above the rank over the rational numbers, and
below it only if the prime divides all minors of that size. Numbers are float64
that hold integers: BLAS multiplies them, exactly while no sum exceeds 2^53.
"""

import numpy as np

PRIME = 8_388_593  # the largest below 2^23
CHUNK = 256  # terms of a sum: 2^8 products of at most 2^44
LEAF = 32  # rows that are eliminated one by one, between products


class RowSpace:
    """The row space of the integer rows that were added, modulo `PRIME`.

    In reduced echelon form: `rows` [r, m] is the identity in `pivots` [r].
    """

    def __init__(self, columns: int) -> None:
        self.rows = np.empty((0, columns))
        self.pivots = np.empty(0, int)

    def add(self, block: np.ndarray) -> np.ndarray:
        """Adds rows [n, m]; returns the numbers of independent ones."""
        added = [np.empty(0, int)]
        for start in range(0, len(block), LEAF):
            part = _reduce(block[start : start + LEAF])
            part = _subtract(part, self.pivots, self.rows)
            new, pivots, numbers = _eliminate(part)
            rest = _subtract(self.rows, pivots, new)
            self.rows = np.concatenate([rest, new])
            self.pivots = np.concatenate([self.pivots, pivots])
            added.append(start + numbers)
        return np.concatenate(added)

    def draw_null(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draws vectors [m, count] whose product with every row is 0."""
        size = self.rows.shape[1]
        free = np.setdiff1d(np.arange(size), self.pivots)
        vectors = np.zeros((size, count))
        vectors[free] = rng.integers(0, PRIME, (len(free), count))
        vectors = _reduce(vectors)
        vectors[self.pivots] = -_multiply(self.rows[:, free], vectors[free])
        return vectors


def _eliminate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the reduced echelon form, pivots and independent rows."""
    rows, pivots, kept = rows.copy(), [], []
    for number, row in enumerate(rows):
        if not row.any():
            continue
        pivot = int(np.argmax(row != 0))
        row[:] = _reduce(row * pow(int(row[pivot]), -1, PRIME))
        others = rows[:, pivot].copy()
        others[number] = 0
        rows[:] = _reduce(rows - np.outer(others, row))
        pivots.append(pivot)
        kept.append(number)
    return rows[kept], np.array(pivots, int), np.array(kept, int)


def _subtract(
    rows: np.ndarray, pivots: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Subtracts the entries of rows [n, m] in the columns of the pivots."""
    return _reduce(rows - _multiply(rows[:, pivots], basis))


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.zeros((len(a), b.shape[1]))
    for start in range(0, len(b), CHUNK):
        part = slice(start, start + CHUNK)
        result = _reduce(result + _reduce(a[:, part] @ b[part]))
    return result


def _reduce(numbers: np.ndarray) -> np.ndarray:
    """Returns the representatives from -PRIME / 2 to PRIME / 2."""
    return numbers - PRIME * np.rint(numbers / PRIME)
