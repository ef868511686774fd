"""Low-rank embeddings of a model: matrices, spectra and penalties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfcomp.analysis.effective_rank import compute_effective_rank
from tfcomp.models.low_rank_embedding import LowRankEmbedding
from tfcomp.models.regularizers import EntropyRegularizer
from tfcomp.models.regularizers import VarianceRegularizer


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """One embedding.

    Attributes:
        matrices: The rendered matrices of all values, [V, rows, columns].
        spectrum: Their singular values, largest first, [V, R].
        effective_rank: Of each matrix, [V]: exponential of the entropy of the
            shares of the squared singular values.
        summary: `effective_rank` (of the true singular values, mean over
            values), and the penalties of equations 10 and 11 averaged over
            values and modes whatever the training does: `entropy` (nats),
            `variance_raw` and `variance_unit` (mean of left and right).
    """

    matrices: np.ndarray
    spectrum: np.ndarray
    effective_rank: np.ndarray
    summary: dict[str, float]


def analyze_embedding(layer: LowRankEmbedding) -> EmbeddingAnalysis:
    """Measures one embedding layer."""
    spectrum = np.asarray(layer.spectrum())
    rank = compute_effective_rank(np.square(spectrum, dtype=np.float64))
    entropy = EntropyRegularizer(1.0, "mean").penalty(layer.coefficients)
    summary = {
        "effective_rank": float(rank.mean()),
        "entropy": float(entropy),
    }
    for basis in ("raw", "unit"):
        variance = VarianceRegularizer(1.0, basis, "mean").penalty
        both = variance(layer.left) + variance(layer.right)
        summary[f"variance_{basis}"] = float(both) / 2
    matrices = np.asarray(layer.matrices())
    return EmbeddingAnalysis(matrices, spectrum, rank, summary)
