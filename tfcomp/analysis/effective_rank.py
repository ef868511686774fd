"""Effective rank: how many dimensions a stage uses.

Of the eigenvalues l_1 >= l_2 >= ... of the covariance of the activations
over points, with p_k = l_k / sum l, three numbers:

    participation ratio    (sum l)^2 / sum l^2 = 1 / sum p_k^2
    entropy rank           exp(-sum p_k log p_k)
    components for q       least m with p_1 + ... + p_m >= q

m equal eigenvalues and otherwise zeros give m for all three (for the third
with q above 1 - 1/m). The threshold q is on *variance*, the sum of the
l = sigma^2, not on the standard deviations sigma. All are invariant under
rotation, scaling and shift. They are bounded by the number of points less
one, so compare sets of points of one size, or read them beside `num_points`.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from tfcomp.analysis.manifolds import compute_pca

VARIANCE_FRACTION = 0.95
# Variance of a subset, relative to that of all points, which is rounding of
# float32 products: points that do not move come out below 1e-7.
SPREAD_FLOOR = 1e-6
# Rounding of the sum of all shares may fall short of a fraction near 1.
_TOLERANCE = 1e-9

Ranks = dict[str, float | None]


def compute_effective_ranks(
    activations: np.ndarray,
    is_ood: np.ndarray,
    fraction: float = VARIANCE_FRACTION,
) -> dict[str, Ranks]:
    """Effective ranks of one stage, over all, ID and OOD points.

    Args:
        activations: One stage, [n, ...]; flattened to [n, units]. Features
            with the same inner products, as of `rotate_features`, give the
            same numbers.
        is_ood: Whether each point lies in the held-out region, [n].
        fraction: Of the variance, for `num_components`.

    Returns:
        `{"all": ..., "id": ..., "ood": ...}`, each with
        `participation_ratio`, `entropy_rank`, `num_components` and
        `num_points`. The first three are None where the points do not
        differ, there are fewer than two, or some are not finite.
    """
    is_ood = np.asarray(is_ood, bool)
    subsets = {"all": np.ones_like(is_ood), "id": ~is_ood, "ood": is_ood}
    features = np.zeros((len(is_ood), 1))  # no spread: every rank is None
    if np.isfinite(activations).all():
        # Once for all subsets, in at most as many dimensions as points.
        features = compute_pca(activations).features
    spectra = {
        name: compute_spectrum(features[rows]) for name, rows in subsets.items()
    }
    floor = SPREAD_FLOOR * spectra["all"].sum()
    return {
        name: summarize_spectrum(
            spectrum if spectrum.sum() > floor else np.zeros(0),
            fraction,
            int(subsets[name].sum()),
        )
        for name, spectrum in spectra.items()
    }


@threadpool_limits.wrap(limits=1, user_api="blas")
def compute_spectrum(features: np.ndarray) -> np.ndarray:
    """Eigenvalues of the covariance of features [n, d], largest first."""
    if len(features) < 2:
        return np.zeros(0)
    centred = features - features.mean(axis=0)
    if centred.shape[0] < centred.shape[1]:
        centred = centred.T  # the same eigenvalues, and further zeros
    eigenvalues = np.linalg.eigvalsh(centred.T @ centred) / len(features)
    return np.maximum(eigenvalues[::-1], 0)  # [min(n, d)]


def compute_participation_ratio(eigenvalues: np.ndarray) -> float:
    """One over the sum of squared shares; NaN if all are zero."""
    shares = _normalize(eigenvalues)
    return float(1 / np.sum(shares**2)) if shares.size else float("nan")


def compute_entropy_rank(eigenvalues: np.ndarray) -> float:
    """Exponential of the entropy of the shares; NaN if all are zero."""
    shares = _normalize(eigenvalues)
    shares = shares[shares > 0]
    if shares.size == 0:
        return float("nan")
    return float(np.exp(-np.sum(shares * np.log(shares))))


def count_components(
    eigenvalues: np.ndarray, fraction: float = VARIANCE_FRACTION
) -> float:
    """Least number of components with a fraction of the variance.

    Args:
        eigenvalues: Of the covariance, largest first, [m].
        fraction: Above 0, at most 1.

    Returns:
        The number; NaN if all eigenvalues are zero.
    """
    if not 0 < fraction <= 1:
        raise ValueError(
            f"fraction must be above 0 and at most 1, received {fraction}."
        )
    shares = _normalize(eigenvalues)
    if shares.size == 0:
        return float("nan")
    reached = np.cumsum(shares) >= fraction - _TOLERANCE
    return float(np.argmax(reached) + 1)


def summarize_spectrum(
    eigenvalues: np.ndarray, fraction: float, num_points: int
) -> Ranks:
    """The ranks of one spectrum, None where they do not exist."""
    ranks = {
        "participation_ratio": compute_participation_ratio(eigenvalues),
        "entropy_rank": compute_entropy_rank(eigenvalues),
        "num_components": count_components(eigenvalues, fraction),
        "num_points": float(num_points),
    }
    return {k: v if np.isfinite(v) else None for k, v in ranks.items()}


def _normalize(eigenvalues: np.ndarray) -> np.ndarray:
    total = np.sum(eigenvalues)
    return eigenvalues / total if total > 0 else np.zeros(0)
