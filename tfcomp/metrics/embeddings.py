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
    from tfcomp.models.value_embedding import ValueEmbedding


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
    """Computes the numbers of one embedding layer."""
    # Here, since metrics are listed without TensorFlow.
    from tfcomp.models import forced_rendering
    from tfcomp.models.registry import AXES

    spectrum = np.asarray(layer.spectrum())
    rank = compute_effective_rank(np.square(spectrum, dtype=np.float64))
    summary: dict[str, float | None] = {"effective_rank": float(rank.mean())}
    profiles = {}
    if isinstance(layer, forced_rendering.AxisEmbedding):
        axis, profiles = layer.find_axis(), layer.profiles()
        summary["ratio"] = layer.measure_ratio()
        summary["axis"] = None if axis is None else AXES.index(axis)
    else:
        entropy = forced_rendering.EntropyRegularizer(1.0, "mean")
        summary["entropy"] = float(entropy(layer.coefficients))
        for basis in ("raw", "unit"):
            variance = forced_rendering.VarianceRegularizer(1.0, basis, "mean")
            both = variance(layer.left) + variance(layer.right)
            summary[f"variance_{basis}"] = float(both) / 2
    matrices = np.asarray(layer.matrices())
    return EmbeddingAnalysis(matrices, spectrum, rank, summary, profiles)


@computes("run", CORRELATION, "neighbor_cosine")
def measure_neighbors(analysis: RunAnalysis) -> Scores:
    """Compares low-rank embeddings of neighboring values (figure 3)."""
    means = []
    for factor in analysis.dataset.space:
        if factor.name in analysis.embeddings and not factor.categorical:
            outputs = analysis.embeddings[factor.name].matrices
            cosines = compute_neighbor_cosines(outputs, factor.is_closed)
            means.append(mean_or_none(cosines))
    return {"neighbor_cosine": average(means)} if means else {}


@computes("run", Limits(1), "axis_ratio")
def measure_axis_ratio(analysis: RunAnalysis) -> Scores:
    """Tests how clearly hard rendering separates axes, by ID alone."""
    summaries = (e.summary for e in analysis.embeddings.values())
    ratios = [r for s in summaries if (r := s.get("ratio")) is not None]
    return {"axis_ratio": min(ratios)} if ratios else {}
