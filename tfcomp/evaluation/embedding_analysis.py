"""Images that the values of a factor own: matrices, spectra, penalties."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tfcomp.analysis.effective_rank import compute_effective_rank
from tfcomp.models.axis_embedding import AxisEmbedding
from tfcomp.models.low_rank_embedding import LowRankEmbedding
from tfcomp.models.model_rules import AXES
from tfcomp.models.regularizers import EntropyRegularizer, VarianceRegularizer
from tfcomp.models.value_embedding import ValueEmbedding


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """One embedding.

    Attributes:
        matrices: Those rendered for all values, [V, rows, columns].
        spectrum: Their singular values, largest first, [V, R].
        effective_rank: Of each matrix, [V]: exponential of the entropy of the
            shares of the squared singular values.
        summary: `effective_rank` (mean over values). Of a `LowRankEmbedding`
            the penalties of equations 10 and 11 averaged over values and
            modes whatever the training does: `entropy` (nats), `variance_raw`
            and `variance_unit` (mean of left and right). Of an
            `AxisEmbedding` the `ratio` of its axes, stronger over weaker (None
            if it was given one), and the `axis` that was left, 0 for rows
            and 1 for columns (None while both are).
        profiles: Of an `AxisEmbedding`, by axis, [V, rows or columns].
    """

    matrices: np.ndarray
    spectrum: np.ndarray
    effective_rank: np.ndarray
    summary: dict[str, float | None]
    profiles: Mapping[str, np.ndarray] = field(default_factory=dict)


def analyze_embedding(layer: ValueEmbedding) -> EmbeddingAnalysis:
    """Measures one embedding layer."""
    matrices = np.asarray(layer.matrices())
    is_axis = isinstance(layer, AxisEmbedding)
    spectrum = np.asarray(layer.spectrum())
    rank = compute_effective_rank(np.square(spectrum, dtype=np.float64))
    summarize = _summarize_axes if is_axis else _summarize_penalties
    summary = {"effective_rank": float(rank.mean()), **summarize(layer)}
    profiles = layer.profiles() if is_axis else {}
    return EmbeddingAnalysis(matrices, spectrum, rank, summary, profiles)


def _summarize_axes(layer: AxisEmbedding) -> dict[str, float | None]:
    axis = layer.find_axis()
    number = None if axis is None else AXES.index(axis)
    return {"ratio": layer.measure_ratio(), "axis": number}


def _summarize_penalties(layer: LowRankEmbedding) -> dict[str, float | None]:
    entropy = EntropyRegularizer(1.0, "mean")(layer.coefficients)
    summary = {"entropy": float(entropy)}
    for basis in ("raw", "unit"):
        variance = VarianceRegularizer(1.0, basis, "mean")
        both = variance(layer.left) + variance(layer.right)
        summary[f"variance_{basis}"] = float(both) / 2
    return summary
