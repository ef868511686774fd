"""Reduces activations to as few dimensions as there are points, exactly.

Ridge regression, principal components and distances only depend on inner
products of rows. With more units than points, these products, the Gram matrix
[n, n], replace the rows: a stage of 50,000 units becomes one of 784.

Normalization: activations are centered by their mean over ID points and
divided by one number, the root mean square length of a centered ID row. So
penalties mean the same in every stage, and units keep their relative sizes.

The helpers of all analyses are here, too: numbers for JSON, and one thread.
"""

from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

BLOCK_UNITS = 4096
Given = ParamSpec("Given")
Result = TypeVar("Result")


def compute_rows(flat: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Normalizes a stage [n, units], as its units or as inner products.

    OOD points take no part in the normalization. Returns float64 activations
    [n, units] if units are fewer than ID points, else their Gram matrix [n, n].
    """
    if flat.shape[1] < np.count_nonzero(~is_ood):
        return normalize_rows(flat, is_ood)
    return compute_gram(flat, is_ood)


@np.errstate(invalid="ignore", over="ignore")
def normalize_rows(flat: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Returns normalized activations [n, units], float64."""
    features = _center(flat, is_ood).astype(np.float64)
    scale = np.sqrt((features[~is_ood] ** 2).sum(axis=1).mean())
    return features / scale if scale > 0 else features


@np.errstate(invalid="ignore", over="ignore")
def compute_gram(flat: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Returns inner products of normalized rows, [n, n]; NaN if not finite."""
    gram = np.zeros((len(is_ood), len(is_ood)))
    for part in iterate_units(flat):
        # Products in float32 for speed, their sum in float64.
        kind = np.result_type(part, np.float32)
        centered = _center(part.astype(kind, copy=False), is_ood)
        gram += centered @ centered.T
    scale = np.diagonal(gram)[~is_ood].mean()
    return gram / scale if scale > 0 else gram


def iterate_units(
    flat: np.ndarray, count: int = BLOCK_UNITS
) -> Iterator[np.ndarray]:
    """Yields parts of a stage [n, units], so that copies are small."""
    for start in range(0, flat.shape[1], count) or [0]:
        yield flat[:, start : start + count]


def _center(block: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    # A row is taken off first, so that a constant unit is exactly zero and not
    # a rounding error to be scaled up.
    shifted = block - block[0]
    mean = shifted[~is_ood].mean(axis=0, dtype=np.float64)
    return shifted - mean.astype(shifted.dtype)


def finite_or_none(value: float | None) -> float | None:
    """Returns a plain float, or None for a number that does not exist."""
    if value is None or not np.isfinite(value):
        return None
    return float(value)


def mean_or_none(values: np.ndarray) -> float | None:
    """Returns the mean; None without values or if one is not finite."""
    return finite_or_none(np.mean(values)) if np.size(values) else None


def median_or_none(values: np.ndarray) -> float | None:
    """Returns the median; None without values or if it is not finite."""
    return finite_or_none(np.median(values)) if np.size(values) else None


def single_threaded(
    function: Callable[Given, Result],
) -> Callable[Given, Result]:
    """Limits the linear algebra library to one thread during the calls."""
    return threadpool_limits.wrap(limits=1, user_api="blas")(function)
