"""Activations in as few dimensions as there are points, exactly.

Ridge regression, principal components and distances only see inner products
of rows. With more units than points, rows are replaced by these products, the
Gram matrix [n, n]: a stage of 50,000 units becomes one of 784.

Normalization: activations are centered by their mean over ID points and
divided by one number, the root mean square length of a centered ID row. So
penalties mean the same in every stage, and units keep their relative sizes.

Beside them, what all analyses share: numbers for JSON, and one thread.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits

BLOCK_UNITS = 4096


def compute_rows(
    blocks: Iterable[np.ndarray], num_units: int, is_ood: np.ndarray
) -> np.ndarray:
    """A stage, normalized, as its units or as inner products, float64.

    Blocks are groups of units, [n, units of the block] each, `num_units` in
    all; OOD points take no part in the normalization. Activations [n, units] if
    units are fewer than ID points, otherwise their Gram matrix [n, n].
    """
    if num_units < np.count_nonzero(~is_ood):
        return normalize_rows(np.concatenate(list(blocks), axis=1), is_ood)
    return compute_gram(blocks, is_ood)


@np.errstate(invalid="ignore", over="ignore")
def normalize_rows(flat: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    """Normalized activations [n, units] as they are, float64."""
    features = _center(flat, is_ood).astype(np.float64)
    scale = np.sqrt((features[~is_ood] ** 2).sum(axis=1).mean())
    return features / scale if scale > 0 else features


@np.errstate(invalid="ignore", over="ignore")
def compute_gram(
    blocks: Iterable[np.ndarray], is_ood: np.ndarray
) -> np.ndarray:
    """Inner products of normalized rows, [n, n]; NaN if not finite."""
    gram = np.zeros((len(is_ood), len(is_ood)))
    for block in blocks:
        for part in iterate_units(block):
            # Products in float32 for speed, their sum in float64.
            kind = np.result_type(part, np.float32)
            centered = _center(part.astype(kind, copy=False), is_ood)
            gram += centered @ centered.T
        # Or it would stay until the next one is there.
        del block, part, centered
    scale = np.diagonal(gram)[~is_ood].mean()
    return gram / scale if scale > 0 else gram


def iterate_units(
    flat: np.ndarray, count: int = BLOCK_UNITS
) -> Iterator[np.ndarray]:
    """Parts of a stage [n, units], to copy no more than a part of it."""
    for start in range(0, flat.shape[1], count) or [0]:
        yield flat[:, start : start + count]


def _center(block: np.ndarray, is_ood: np.ndarray) -> np.ndarray:
    # A row is taken off first, so that a constant unit is exactly zero and not
    # a rounding error to be scaled up.
    shifted = block - block[0]
    mean = shifted[~is_ood].mean(axis=0, dtype=np.float64)
    return shifted - mean.astype(shifted.dtype)


def finite_or_none(value: float | None) -> float | None:
    """A plain float, or None for a number that does not exist."""
    if value is None or not np.isfinite(value):
        return None
    return float(value)


def mean_or_none(values: np.ndarray) -> float | None:
    """The mean; None without values or if one of them is not finite."""
    return finite_or_none(np.mean(values)) if np.size(values) else None


def single_threaded(function: Callable) -> Callable:
    """Limits the linear algebra library to one thread during the calls."""
    return threadpool_limits.wrap(limits=1, user_api="blas")(function)
