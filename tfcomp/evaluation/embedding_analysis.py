"""Images that the values of a factor own: matrices, spectra, penalties."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tfcomp.analysis.effective_rank import compute_effective_rank
from tfcomp.models.axis_embedding import AxisEmbedding
from tfcomp.models.model_rules import AXES
from tfcomp.models.regularizers import EntropyRegularizer, VarianceRegularizer
from tfcomp.models.value_embedding import ValueEmbedding


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """One embedding.

    The summary has `effective_rank` (mean over values). Of a `LowRankEmbedding`
    also the penalties of equations 10 and 11 averaged over values and modes
    whatever the training does: `entropy` (nats), `variance_raw` and
    `variance_unit` (mean of left and right). Of an `AxisEmbedding` the `ratio`
    of its axes, stronger over weaker (None if it was given one), and the `axis`
    that was left, 0 for rows and 1 for columns (None while both are).
    """

    matrices: np.ndarray  # those rendered for all values, [V, rows, columns]
    spectrum: np.ndarray  # their singular values, largest first, [V, R]
    effective_rank: np.ndarray  # of each matrix, by its spectrum, [V]
    summary: dict[str, float | None]
    # Of an `AxisEmbedding`, by axis, [V, rows or columns].
    profiles: Mapping[str, np.ndarray] = field(default_factory=dict)


def analyze_embedding(layer: ValueEmbedding) -> EmbeddingAnalysis:
    """Measures one embedding layer."""
    spectrum = np.asarray(layer.spectrum())
    rank = compute_effective_rank(np.square(spectrum, dtype=np.float64))
    summary: dict[str, float | None] = {"effective_rank": float(rank.mean())}
    profiles = {}
    if isinstance(layer, AxisEmbedding):
        axis, profiles = layer.find_axis(), layer.profiles()
        summary["ratio"] = layer.measure_ratio()
        summary["axis"] = None if axis is None else AXES.index(axis)
    else:
        entropy = EntropyRegularizer(1.0, "mean")(layer.coefficients)
        summary["entropy"] = float(entropy)
        for basis in ("raw", "unit"):
            variance = VarianceRegularizer(1.0, basis, "mean")
            both = variance(layer.left) + variance(layer.right)
            summary[f"variance_{basis}"] = float(both) / 2
    matrices = np.asarray(layer.matrices())
    return EmbeddingAnalysis(matrices, spectrum, rank, summary, profiles)
