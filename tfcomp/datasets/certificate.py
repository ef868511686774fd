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
    """What training determines at an order.

    Attributes:
        certified: Mask of the combinations that are determined, [n].
        images: Rows of the fewest further combinations with which all are
            determined.
    """

    certified: np.ndarray
    images: np.ndarray


def certify(
    train: np.ndarray, every: np.ndarray, order: int
) -> Certificate | None:
    """Finds the combinations that training determines.

    Args:
        train: Classes of the training combinations, int [t, F]. An absent
            factor, -1, counts as a value.
        every: Classes of the combinations that are judged, int [n, F].
        order: The number of factors that may interact, at least 1.

    Returns:
        None if the design has too many columns.
    """
    points = np.concatenate([train, every])
    points = points[:, np.ptp(points, axis=0) > 0]
    if order >= points.shape[1]:
        return _certify_known(points, len(train))

    points -= points.min(axis=0)
    sizes = points.max(axis=0) + 1
    if exceeds_columns(sizes.tolist(), order, MAX_COLUMNS):
        return None
    codes, num_columns = number_effects(points, order)
    train_codes, codes = np.split(codes, [len(train)])
    null = _find_null(train_codes, num_columns)
    return Certificate(
        certified=~_is_open(codes, null), images=_complete(codes, null)
    )


def _certify_known(points: np.ndarray, num_train: int) -> Certificate:
    """Certifies training combinations alone: all factors may interact."""
    train, rows = np.split(number_rows(points), [num_train])
    certified = np.isin(rows, train)
    _, first = np.unique(rows, return_index=True)
    return Certificate(certified, images=first[~certified[first]])


def exceeds_columns(sizes: Sequence[int], order: int, most: int) -> bool:
    """Tells whether a design may have more than `most` columns.

    It stops counting there: 312 factors have five million triples.
    """
    count = 0
    for subset in itertools.combinations(sizes, order):
        count += math.prod(subset)
        if count > most:
            return True
    return False


def number_effects(table: np.ndarray, order: int) -> tuple[np.ndarray, int]:
    """Numbers the effects of `order` factors, the columns of the design.

    Where a factor can be absent, there are effects of fewer factors, too.

    Args:
        table: Classes, int [n, F]; -1 where a factor is absent.
        order: The number of factors that interact.

    Returns:
        The columns in which a row of the design has a 1, int [n, S], -1 if a
        factor is absent; and the number of columns.
    """
    num_factors = table.shape[1]
    largest = min(order, num_factors)
    smallest = 1 if (table < 0).any() else largest

    columns = []
    num_columns = 0
    for size in range(smallest, largest + 1):
        for subset in itertools.combinations(range(num_factors), size):
            part = table[:, subset]
            shape = part.max(axis=0, initial=0) + 1
            is_absent = (part < 0).any(axis=1)
            flat = np.ravel_multi_index(np.maximum(part, 0).T, shape)
            places = number(flat)
            columns.append(np.where(is_absent, -1, places + num_columns))
            num_columns += int(places.max(initial=-1)) + 1
    return np.stack(columns, axis=1), num_columns


def make_products(codes: np.ndarray, num_columns: int) -> np.ndarray:
    """Makes the normal equations of one-hot rows, [columns, columns]."""
    from scipy import sparse

    rows, subsets = np.nonzero(codes >= 0)
    entries = np.ones(len(rows)), (rows, codes[rows, subsets])
    design = sparse.csr_array(entries, shape=(len(codes), num_columns))
    return (design.T @ design).toarray()


def _find_null(codes: np.ndarray, num_columns: int) -> np.ndarray:
    """Finds an orthonormal basis of the null space, [columns, d]."""
    from scipy.linalg import lapack, solve_triangular

    products = make_products(codes, num_columns)
    scales = 1 / np.sqrt(np.maximum(products.diagonal(), 1))
    scaled = scales * products * scales[:, None]
    lower, pivots, rank, _ = lapack.dpstrf(scaled, tol=RANK, lower=1)
    determined, free = np.split(pivots - 1, [rank])

    null = np.zeros((num_columns, len(free)))
    null[free] = np.eye(len(free))
    null[determined] = -solve_triangular(
        lower[:rank, :rank], lower[rank:, :rank].T, trans=1, lower=True
    )
    return np.linalg.qr(scales[:, None] * null)[0]


def _is_open(codes: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Marks rows [n] that are not in the row space."""
    rng = np.random.default_rng(0)
    vectors = null @ rng.normal(size=(null.shape[1], TESTS))
    totals = np.sum([vectors[column] for column in codes.T], axis=0)
    return np.any(np.abs(totals) > ROUNDING, axis=1)


def _complete(codes: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Chooses the fewest rows that complete the row space."""
    from scipy.linalg import qr

    rng = np.random.default_rng(1)
    images = [np.empty(0, int)]
    while True:
        rows = np.flatnonzero(_is_open(codes, null))
        if not rows.size:
            return np.concatenate(images)
        if len(rows) > ROWS:
            rows = np.sort(rng.choice(rows, ROWS, replace=False))

        block = np.sum([null[c] for c in codes[rows].T], axis=0)  # [rows, d]
        basis, upper, pivots = qr(block.T, mode="economic", pivoting=True)
        sizes = np.abs(upper.diagonal())
        basis = basis[:, sizes > RANK * sizes[0]]
        images.append(rows[pivots[: basis.shape[1]]])
        null = null - (null @ basis) @ basis.T
