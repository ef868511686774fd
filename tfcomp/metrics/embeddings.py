"""Numbers of embeddings of factor values (section 4.1), and their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.metrics.features import (
    Scores,
    average,
    compute_effective_rank,
    mean_or_none,
)
from tfcomp.metrics.kernels import compute_neighbor_cosines
from tfcomp.metrics.metric import computes
from tfcomp.statistics.limits import CORRELATION, Limits

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis
    from tfcomp.models.forced_rendering import AxisEmbedding, ValueEmbedding


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """Numbers of one embedding over its values V."""

    matrices: np.ndarray  # rendered for all values, [V, rows, columns]
    spectrum: np.ndarray  # singular values, largest first, [V, R]
    effective_rank: np.ndarray  # of each matrix, by its spectrum, [V]
    # `effective_rank`; penalties (equations 10 and 11) averaged over values and
    # modes; for an `AxisEmbedding` the `ratio` of its axes, stronger over
    # weaker (None if given), and the one that is left, 0 for rows.
    summary: dict[str, float | None]
    # Of an `AxisEmbedding`, by axis, [V, rows or columns].
    profiles: Mapping[str, np.ndarray] = field(default_factory=dict)


def analyze_embedding(layer: ValueEmbedding) -> EmbeddingAnalysis:
    """Computes the numbers of one embedding layer (section 4.1)."""
    # Here, since metrics are listed without TensorFlow.
    from tfcomp.models import forced_rendering

    spectrum = np.asarray(layer.spectrum())
    rank = compute_effective_rank(np.square(spectrum, dtype=np.float64))
    summary: dict[str, float | None] = {"effective_rank": float(rank.mean())}
    profiles = {}
    if isinstance(layer, forced_rendering.AxisEmbedding):
        profiles = layer.profiles()
        summary |= _summarize_axes(layer)
    else:
        summary |= _summarize_penalties(layer)
    return EmbeddingAnalysis(
        matrices=np.asarray(layer.matrices()),
        spectrum=spectrum,
        effective_rank=rank,
        summary=summary,
        profiles=profiles,
    )


def _summarize_axes(layer: AxisEmbedding) -> Scores:
    """Tells the axis of an embedding, and how clearly it stands out."""
    from tfcomp.models.registry import AXES

    axis = layer.find_axis()
    number = None
    if axis is not None:
        number = AXES.index(axis)
    return {"ratio": layer.measure_ratio(), "axis": number}


def _summarize_penalties(layer: ValueEmbedding) -> Scores:
    """Computes the means of penalties over values (equations 10 and 11)."""
    from tfcomp.models import forced_rendering

    entropy = forced_rendering.EntropyRegularizer(1.0, "mean")
    summary: Scores = {"entropy": float(entropy(layer.coefficients))}
    for basis in ("raw", "unit"):
        variance = forced_rendering.VarianceRegularizer(1.0, basis, "mean")
        both = variance(layer.left) + variance(layer.right)
        summary[f"variance_{basis}"] = float(both) / 2
    return summary


@computes("run", CORRELATION, "neighbor_cosine")
def measure_neighbors(analysis: RunAnalysis) -> Scores:
    """Compares low-rank embeddings of neighboring values (figure 3)."""
    means = []
    for factor in analysis.dataset.space:
        if factor.name in analysis.embeddings and not factor.categorical:
            matrices = analysis.embeddings[factor.name].matrices
            cosines = compute_neighbor_cosines(matrices, factor.is_closed)
            means.append(mean_or_none(cosines))
    if not means:
        return {}
    return {"neighbor_cosine": average(means)}


@computes("run", Limits(1), "axis_ratio")
def measure_axis_ratio(analysis: RunAnalysis) -> Scores:
    """Tests how clearly hard rendering separates axes, by ID alone."""
    ratios = []
    for embedding in analysis.embeddings.values():
        ratio = embedding.summary.get("ratio")
        if ratio is not None:
            ratios.append(ratio)
    if not ratios:
        return {}
    return {"axis_ratio": min(ratios)}
