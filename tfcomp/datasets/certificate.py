"""Combinations of factors that a training set determines.

Let f be any function of the factors without interactions of more than k of
them (the order): a sum of functions of k factors each. A combination is
*certified* at the order k if the values of f on the training set determine
its value there. In the terms of the ANOVA design, which has a column for every
combination of the values of k factors: if its row lies in the row space of the
training rows. At order 1 that is the affine hull of one-hot codes
(compositional risk minimization, Mahajan, Pezeshki and others).

The row space is known by its null space, from a pivoted Cholesky decomposition
of the normal equations. A row lies in it if random vectors of the null space
vanish on the row.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcomp.datasets.factors import number, number_rows

MAX_COLUMNS = 6000  # of normal equations, .3 GB
RANK = 1e-9  # relative to the largest pivot: less is rounding
ROUNDING = 1e-6  # of the sum of a row with a null vector
TESTS = 3  # random vectors
ROWS = 512  # combinations that are added at a time


@dataclass(frozen=True)
class Certificate:
    """Combinations that training determines at an order."""

    certified: np.ndarray  # mask of all combinations, [n]
    images: np.ndarray  # rows of the fewest more with which all are determined


def certify(
    train: np.ndarray, every: np.ndarray, order: int
) -> Certificate | None:
    """Returns the certificate of the rows of `every`; None if too many.

    Both tables are classes, int [n, F]; an absent factor (-1) is a value.
    """
    points = np.concatenate([train, every])
    points = points[:, np.ptp(points, axis=0) > 0]
    if order >= points.shape[1]:  # only known combinations are determined
        rows = number_rows(points)
        certified = np.isin(rows[len(train) :], rows[: len(train)])
        first = np.unique(rows[len(train) :], return_index=True)[1]
        return Certificate(certified, first[~certified[first]])
    points -= points.min(axis=0)
    sizes = points.max(axis=0) + 1
    if exceeds_columns(sizes.tolist(), order, MAX_COLUMNS):
        return None
    codes, count = number_effects(points, order)
    null = _find_null(codes[: len(train)], count)
    asked = codes[len(train) :]
    certified = ~_leave(asked, null)
    return Certificate(certified, _complete(asked, null))


def exceeds_columns(sizes: Sequence[int], order: int, most: int) -> bool:
    """Returns True if a design may have more than `most` columns.

    It stops counting there: 312 factors have five million triples.
    """
    count = 0
    for subset in itertools.combinations(sizes, order):
        count += math.prod(subset)
        if count > most:
            return True
    return False


def number_effects(table: np.ndarray, order: int) -> tuple[np.ndarray, int]:
    """Returns columns of effects of `order` factors, [n, S]; -1 if absent."""
    factors = table.shape[1]
    most = min(order, factors)
    columns, count = [], 0
    # Of fewer factors where some factor is absent.
    for size in range(1 if (table < 0).any() else most, most + 1):
        for subset in itertools.combinations(range(factors), size):
            part = table[:, subset]
            shape = part.max(axis=0, initial=0) + 1
            is_absent = (part < 0).any(axis=1)
            place = number(np.ravel_multi_index(np.maximum(part, 0).T, shape))
            columns.append(np.where(is_absent, -1, place + count))
            count += int(place.max(initial=-1)) + 1
    return np.stack(columns, axis=1), count


def make_products(codes: np.ndarray, count: int) -> np.ndarray:
    """Returns the normal equations of one-hot rows, [columns, columns]."""
    from scipy import sparse

    rows, subsets = np.nonzero(codes >= 0)
    ones = np.ones(len(rows)), (rows, codes[rows, subsets])
    design = sparse.csr_array(ones, shape=(len(codes), count))
    return (design.T @ design).toarray()


def _find_null(codes: np.ndarray, count: int) -> np.ndarray:
    """Returns an orthonormal basis of the null space, [columns, d]."""
    from scipy.linalg import lapack, solve_triangular

    products = make_products(codes, count)
    scales = 1 / np.sqrt(np.maximum(products.diagonal(), 1))
    scaled = scales * products * scales[:, None]
    lower, pivots, rank, _ = lapack.dpstrf(scaled, tol=RANK, lower=1)
    known, free = np.split(pivots - 1, [rank])
    null = np.zeros((count, len(free)))
    null[free] = np.eye(len(free))
    null[known] = -solve_triangular(
        lower[:rank, :rank], lower[rank:, :rank].T, trans=1, lower=True
    )
    return np.linalg.qr(scales[:, None] * null)[0]


def _leave(codes: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Returns rows [n] that are not in the row space."""
    rng = np.random.default_rng(0)
    vectors = null @ rng.normal(size=(null.shape[1], TESTS))
    totals = np.sum([vectors[column] for column in codes.T], axis=0)
    return np.any(np.abs(totals) > ROUNDING, axis=1)


def _complete(codes: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Returns the fewest rows that complete the row space."""
    from scipy.linalg import qr

    rng, images = np.random.default_rng(1), [np.empty(0, int)]
    while (rows := np.flatnonzero(_leave(codes, null))).size:
        if len(rows) > ROWS:
            rows = np.sort(rng.choice(rows, ROWS, replace=False))
        block = np.sum([null[c] for c in codes[rows].T], axis=0)  # [rows, d]
        basis, upper, pivots = qr(block.T, mode="economic", pivoting=True)
        sizes = np.abs(upper.diagonal())
        basis = basis[:, sizes > RANK * sizes[0]]
        images.append(rows[pivots[: basis.shape[1]]])
        null = null - (null @ basis) @ basis.T
    return np.concatenate(images)
