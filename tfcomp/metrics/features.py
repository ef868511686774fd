"""Reduces activations to as few dimensions as there are points, exactly.

Ridge regression, principal components and distances only depend on inner
products of rows. With more units than points, these products, the Gram matrix
[n, n], replace the rows: a stage of 50,000 units becomes one of 784.

Activations are centered by their mean over ID points and divided by one number,
the root mean square length of a centered ID row. So penalties mean the same in
every stage, and units keep their relative sizes.

For weights w_k >= 0 with shares p_k = w_k / sum w (squared singular values, or
eigenvalues of a covariance over points)

    effective rank         exp(-sum p_k log p_k)
    participation ratio    1 / sum p_k^2

Ranks of a stage do not exceed the number of points less one.
"""

from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import numpy as np
from numpy import ndarray as Array
from threadpoolctl import threadpool_limits

BLOCK_UNITS = 4096
# Multiplications up to which one thread computes a product: others cost more
# processor time than they save, as they wait for each other in a loop.
SERIAL_PRODUCTS = 2**28
# Variance of a subset over the variance of all points up to which it is dead.
SPREAD_FLOOR = 1e-6
Given = ParamSpec("Given")
Result = TypeVar("Result")


def single_threaded(
    function: Callable[Given, Result],
) -> Callable[Given, Result]:
    """Limits the linear algebra library to one thread during the calls."""
    limit = threadpool_limits.wrap(
        limits=1,
        user_api="blas",
    )
    return limit(function)


def compute_rows(flat: Array, is_ood: Array) -> Array:
    """Normalizes a stage by its ID points alone.

    Args:
        flat: Activations, [n, units].
        is_ood: Which points are held out, [n].

    Returns:
        Units [n, units] if they are fewer than ID points, else inner products,
        the Gram matrix [n, n]; float64.
    """
    num_id = np.count_nonzero(~is_ood)
    if flat.shape[1] < num_id:
        return normalize_rows(flat, is_ood)
    return compute_gram(flat, is_ood)


@np.errstate(
    invalid="ignore",
    over="ignore",
)
def normalize_rows(flat: Array, is_ood: Array) -> Array:
    """Normalizes activations.

    Args:
        flat: Activations, [n, units].
        is_ood: Which points are held out, [n].

    Returns:
        Units, [n, units], float64.
    """
    features = _center(flat, is_ood).astype(np.float64)
    squared_lengths = np.sum(features[~is_ood] ** 2, axis=1)
    scale = np.sqrt(squared_lengths.mean())
    if scale > 0:
        features = features / scale
    return features


@np.errstate(
    invalid="ignore",
    over="ignore",
)
def compute_gram(flat: Array, is_ood: Array) -> Array:
    """Computes inner products of normalized rows.

    Args:
        flat: Activations, [n, units].
        is_ood: Which points are held out, [n].

    Returns:
        The Gram matrix, [n, n], float64; NaN if not finite.
    """
    multiply = _multiply_rows
    if len(is_ood) * flat.size <= SERIAL_PRODUCTS:
        multiply = _multiply_serially
    gram = multiply(flat, is_ood)

    squared_lengths = np.diagonal(gram)[~is_ood]
    scale = squared_lengths.mean()
    if scale > 0:
        gram = gram / scale
    return gram


def _multiply_rows(flat: Array, is_ood: Array) -> Array:
    """Computes inner products [n, n] of centered rows [n, units], float64."""
    num_points = len(is_ood)
    gram = np.zeros((num_points, num_points))
    for part in iterate_units(flat):
        # Products in float32 for speed, their sum in float64.
        kind = np.result_type(part, np.float32)
        part = part.astype(kind, copy=False)
        centered = _center(part, is_ood)
        gram += centered @ centered.T
    return gram


_multiply_serially = single_threaded(_multiply_rows)


def iterate_units(flat: Array, count: int = BLOCK_UNITS) -> Iterator[Array]:
    """Yields parts of a stage, so that copies are small.

    Args:
        flat: Activations, [n, units].
        count: Units of a part; a stage without units is one part.
    """
    num_units = max(flat.shape[1], 1)
    for start in range(0, num_units, count):
        yield flat[:, start : start + count]


def _center(block: Array, is_ood: Array) -> Array:
    """Takes the mean over ID points off activations [n, units]."""
    # A row is taken off first, so that a constant unit is exactly zero and not
    # a rounding error to be scaled up.
    shifted = block - block[0]
    id_points = shifted[~is_ood]
    mean = id_points.mean(axis=0, dtype=np.float64)
    shifted -= mean.astype(shifted.dtype)
    return shifted


def compute_effective_rank(weights: Array) -> Array:
    """Computes effective ranks [...] of weights [..., m]; 0 for zeros."""
    from scipy.special import entr  # here: the help of a command needs none

    weights = np.asarray(weights, np.float64)
    total = weights.sum(axis=-1)  # [...]
    is_zero = total == 0
    divisor = np.where(is_zero, 1.0, total)
    shares = weights / divisor[..., np.newaxis]
    entropy = entr(shares).sum(axis=-1)
    return np.where(is_zero, 0.0, np.exp(entropy))


@single_threaded
def compute_participation(rows: Array, points: Array) -> float | None:
    """Computes the participation ratio of a stage over some points.

    Args:
        rows: A stage by `compute_rows`.
        points: A mask, [n].

    Returns:
        The ratio; None if the points are equal or not finite.
    """
    if points.sum() < 2 or not np.isfinite(rows).all():
        return None

    is_gram = rows.shape[1] >= len(rows)
    if is_gram:
        part = rows[np.ix_(points, points)]
    else:
        part = rows[points]
    product = part - part.mean(axis=0)
    if is_gram:
        product = product - product.mean(axis=1, keepdims=True)
    elif product.shape[0] < product.shape[1]:
        product = product @ product.T
    else:
        product = product.T @ product

    # Rows have a mean square length of one.
    trace = np.trace(product)
    if trace <= SPREAD_FLOOR * len(part):
        return None
    return float(trace**2 / np.sum(product**2))
