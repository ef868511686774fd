"""Numbers of embeddings of factor values (section 4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray as Array

from tfcomp.metrics.features import compute_effective_rank
from tfcomp.metrics.registry import Scores
from tfcomp.models.forced_rendering import (
    AxisEmbedding,
    EntropyRegularizer,
    ValueEmbedding,
    VarianceRegularizer,
)
from tfcomp.models.registry import AXES


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """Numbers of one embedding over its values V."""

    matrices: Array  # rendered for all values, [V, rows, columns]
    # `effective_rank`; penalties (equations 10 and 11) averaged over values and
    # modes; for an `AxisEmbedding` the `ratio` of its axes, stronger over
    # weaker (None if given), and the one that is left, 0 for rows.
    summary: Scores
    # Of an `AxisEmbedding`, by axis, [V, rows or columns].
    profiles: Mapping[str, Array] = field(default_factory=dict)


def analyze_embedding(layer: ValueEmbedding) -> EmbeddingAnalysis:
    """Computes the numbers of one embedding layer (section 4.1)."""
    spectrum = np.asarray(layer.spectrum())
    squares = np.square(spectrum, dtype=np.float64)
    rank = compute_effective_rank(squares)
    mean_rank = float(rank.mean())
    summary: Scores = {"effective_rank": mean_rank}
    profiles = {}
    if isinstance(layer, AxisEmbedding):
        profiles = layer.profiles()
        summary |= _summarize_axes(layer)
    else:
        summary |= _summarize_penalties(layer)
    matrices = np.asarray(layer.matrices())
    return EmbeddingAnalysis(
        matrices=matrices,
        summary=summary,
        profiles=profiles,
    )


def _summarize_axes(layer: AxisEmbedding) -> Scores:
    """Tells the axis of an embedding, and how clearly it stands out."""
    axis = layer.find_axis()
    number = None
    if axis is not None:
        number = AXES.index(axis)
    return {
        "ratio": layer.measure_ratio(),
        "axis": number,
    }


def _summarize_penalties(layer: ValueEmbedding) -> Scores:
    """Computes the means of penalties over values (equations 10 and 11)."""
    entropy = EntropyRegularizer(1.0, "mean")
    mean_entropy = entropy(layer.coefficients)
    summary: Scores = {"entropy": float(mean_entropy)}
    for basis in ("raw", "unit"):
        variance = VarianceRegularizer(1.0, basis, "mean")
        left = variance(layer.left)
        right = variance(layer.right)
        both = float(left + right)
        summary[f"variance_{basis}"] = both / 2
    return summary
