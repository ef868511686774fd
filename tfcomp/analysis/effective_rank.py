"""Effective rank: how many terms carry a spectrum, how many dimensions a stage.

Of weights w_1 >= w_2 >= ... >= 0 with shares p_k = w_k / sum w, three numbers:

    effective rank         exp(-sum p_k log p_k)
    participation ratio    1 / sum p_k^2
    components for 95 %    least m with p_1 + ... + p_m >= 0.95

The weights are squared singular values of a matrix or of a kernel, or the
eigenvalues of the covariance of a stage's activations over points. The ranks
of a stage do not exceed the number of points less one: compare sets of a size.
"""

import numpy as np
from scipy.special import entr

from tfcomp.analysis.features import single_threaded
from tfcomp.analysis.manifolds import compute_pca

# Variance, relative to that of all points, of a subset that does not move.
SPREAD_FLOOR = 1e-6

Ranks = dict[str, float | None]


def compute_effective_rank(weights: np.ndarray) -> np.ndarray:
    """Effective ranks [...] of weights [..., m]; 0 of zeros, NaN of NaN."""
    weights = np.asarray(weights, np.float64)
    total = weights.sum(axis=-1, keepdims=True)
    shares = weights / np.where(total == 0, 1.0, total)
    rank = np.exp(entr(shares).sum(axis=-1))
    return np.where(total[..., 0] == 0, 0.0, rank)


def compute_effective_ranks(
    activations: np.ndarray, is_ood: np.ndarray
) -> dict[str, Ranks]:
    """Effective ranks of one stage [n, ...], over `all`, `id` and `ood` points.

    Each has `participation_ratio`, `entropy_rank` (the effective rank),
    `num_components` for 95 % of the variance, and `num_points`. The first
    three are None where the points do not differ, there are fewer than two, or
    some are not finite.
    """
    features = np.zeros((len(is_ood), 1))  # no spread: every rank is None
    if np.isfinite(activations).all():
        # Once for all subsets, in at most as many dimensions as points.
        features = compute_pca(activations).features
    is_ood = np.asarray(is_ood, bool)
    subsets = {"all": np.ones_like(is_ood), "id": ~is_ood, "ood": is_ood}
    spectra = {
        name: compute_spectrum(features[rows]) for name, rows in subsets.items()
    }
    floor = SPREAD_FLOOR * spectra["all"].sum()
    return {
        name: {
            **summarize_spectrum(spectrum if spectrum.sum() > floor else None),
            "num_points": float(subsets[name].sum()),
        }
        for name, spectrum in spectra.items()
    }


@single_threaded
def compute_participation(rows: np.ndarray, chosen: np.ndarray) -> float | None:
    """Participation ratio of chosen points, by traces: (sum w)^2 / sum w^2."""
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


@single_threaded
def compute_spectrum(features: np.ndarray) -> np.ndarray:
    """Eigenvalues of the covariance of features [n, d], largest first."""
    if len(features) < 2:
        return np.zeros(0)
    centered = features - features.mean(axis=0)
    if centered.shape[0] < centered.shape[1]:
        centered = centered.T  # the same eigenvalues, and further zeros
    eigenvalues = np.linalg.eigvalsh(centered.T @ centered) / len(features)
    return np.maximum(eigenvalues[::-1], 0)  # [min(n, d)]


def summarize_spectrum(eigenvalues: np.ndarray | None) -> Ranks:
    """The numbers of a spectrum [m], largest first, not all 0; None of None."""
    if eigenvalues is None:
        names = ("participation_ratio", "entropy_rank", "num_components")
        return dict.fromkeys(names)
    shares = eigenvalues / eigenvalues.sum()
    reached = np.cumsum(shares) >= 0.95 - 1e-9  # of which rounding falls short
    return {
        "participation_ratio": float(1 / np.sum(shares**2)),
        "entropy_rank": float(compute_effective_rank(eigenvalues)),
        "num_components": float(np.argmax(reached) + 1),
    }
