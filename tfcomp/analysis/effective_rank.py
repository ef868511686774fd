"""Effective rank: the number of terms or dimensions that carry a spectrum.

For weights w_1 >= w_2 >= ... >= 0 with shares p_k = w_k / sum w:

    effective rank         exp(-sum p_k log p_k)
    participation ratio    1 / sum p_k^2

The weights are squared singular values of a matrix or of a kernel, or the
eigenvalues of the covariance of a stage's activations over points. The ranks
of a stage do not exceed the number of points less one: compare sets of a size.
"""

import numpy as np
from scipy.special import entr

from tfcomp.analysis.features import single_threaded

# Variance of a subset over that of all points up to which it is dead.
SPREAD_FLOOR = 1e-6


def compute_effective_rank(weights: np.ndarray) -> np.ndarray:
    """Returns effective ranks [...] of weights [..., m]; 0 for zeros."""
    weights = np.asarray(weights, np.float64)
    total = weights.sum(axis=-1, keepdims=True)
    shares = weights / np.where(total == 0, 1.0, total)
    rank = np.exp(entr(shares).sum(axis=-1))
    return np.where(total[..., 0] == 0, 0.0, rank)


@single_threaded
def compute_participation(rows: np.ndarray, chosen: np.ndarray) -> float | None:
    """Returns the participation ratio of chosen points, (sum w)^2 / sum w^2.

    Rows are those of `compute_rows`. None where the points do not differ, there
    are fewer than two, or some are not finite.
    """
    if chosen.sum() < 2 or not np.isfinite(rows).all():
        return None
    is_gram = rows.shape[1] >= len(rows)
    part = rows[np.ix_(chosen, chosen)] if is_gram else rows[chosen]
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
