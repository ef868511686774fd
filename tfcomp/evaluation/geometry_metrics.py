"""Metrics of the geometry of stages; imports no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis import geometry
from tfcomp.analysis.features import mean_or_none, median_or_none
from tfcomp.evaluation.image_metrics import Numbers, Rows
from tfcomp.statistics.metric import POSITIVE, REAL, SHARE, Limits, computes

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis


@computes(
    "stages",
    POSITIVE,
    "log_volume_sd log_volume_sd_id log_volume_sd_ood "
    "log_volume_deviation_id log_volume_deviation_ood "
    "log_volume_median_deviation_id log_volume_median_deviation_ood",
)
@computes(
    "stages",
    REAL,
    "log_volume_median_id log_volume_median_ood log_volume_difference",
)
@computes("stages", SHARE, "floor_fraction_id floor_fraction_ood", better="low")
def compute_volume_spread(analysis: RunAnalysis) -> Rows:
    """Tests how evenly a stage spreads the factors (section 3.4, figure 2e).

    The spread of log sqrt(det g) is 0 for a manifold that is stretched alike
    everywhere. A fold moves the deviation, and no mean.
    """
    is_id, is_ood = analysis.splits.is_id, analysis.splits.is_ood
    both = is_id.any() and is_ood.any()
    rows: Rows = {}
    for stage, v in analysis.log_volume.items():
        difference = v[is_ood].mean() - v[is_id].mean() if both else None
        row = _spread("log_volume", v, analysis)
        row["log_volume_difference"] = difference
        distance, g = np.abs(v - np.median(v[is_id])), analysis.metrics[stage]
        for name, chosen in analysis.subsets.items():
            sd = float(v[chosen].std()) if chosen.any() else None
            far, floored = distance[chosen], geometry.find_floored(g[chosen])
            row[f"log_volume_sd_{name}"] = sd
            row[f"log_volume_deviation_{name}"] = mean_or_none(far)
            row[f"log_volume_median_{name}"] = median_or_none(v[chosen])
            row[f"floor_fraction_{name}"] = mean_or_none(floored)
        rows[stage] = row
    return rows


def _spread(name: str, volume: np.ndarray, analysis: RunAnalysis) -> Numbers:
    """Returns the standard deviation, and the deviations from the ID median."""
    distance = np.abs(volume - np.median(volume[analysis.splits.is_id]))
    return {f"{name}_sd": float(volume.std())} | {
        f"{name}_median_deviation_{subset}": median_or_none(distance[chosen])
        for subset, chosen in analysis.subsets.items()
    }


@computes(
    "stages",
    Limits(0.5, 1),
    better="high",
    chart=geometry.FACTORIZATION,
    ratio_factorization="factorization, ratio of means: the score as the "
    "published code computes it, for comparison: it divides the mean of |g_xy| "
    "by the mean of g_xx + g_yy, so that points with long directions dominate",
)
@computes("stages", Limits(0.5, 1), "scaled_factorization", better="high")
@computes("stages", SHARE, "worst_pair_factorization", better="high")
@computes("stages", SHARE, "chance_factorization")
def compute_orthogonality(analysis: RunAnalysis) -> Rows:
    """Scores the angles between directions of factors (figures 2a to 2d)."""
    space = analysis.dataset.space
    if len(space.ordered) < 2:
        return {}  # of one direction there is nothing to factorize
    factors = [space.factors[column] for column in space.ordered]
    ranges = np.array([factor.high - factor.low for factor in factors])
    return {
        stage: {
            "factorization": mean_or_none(geometry.compute_factorization(g)),
            "ratio_factorization": geometry.compute_ratio_factorization(g),
            "scaled_factorization": mean_or_none(
                geometry.compute_factorization(g * ranges[:, None] * ranges)
            ),
            "worst_pair_factorization": min(
                geometry.compute_pair_scores(g).values()
            ),
            "chance_factorization": geometry.compute_chance(
                analysis.stage_sizes[stage]
            ),
        }
        for stage, g in analysis.metrics.items()
    }


@computes(
    "stages",
    Limits(0.5, 1),
    "factorization_gradient factorization_gradient_ratio_of_means",
    better="high",
)
@computes("stages", REAL, "log_volume_gradient_id log_volume_gradient_ood")
@computes(
    "stages",
    POSITIVE,
    "log_volume_gradient_sd log_volume_gradient_median_deviation_id "
    "log_volume_gradient_median_deviation_ood",
)
def compute_gradient_geometry(analysis: RunAnalysis) -> Rows:
    """Scores a geometry without derivatives, to compare with published ones."""
    rows: Rows = {}
    for stage, g in analysis.gradient_metrics.items():  # of a complete grid
        volume = geometry.compute_log_volume(g)
        row = _spread("log_volume_gradient", volume, analysis)
        for name, chosen in analysis.subsets.items():
            row[f"log_volume_gradient_{name}"] = mean_or_none(volume[chosen])
        if len(analysis.dataset.space.ordered) > 1:
            scores, ratio = (
                geometry.compute_factorization(g),
                geometry.compute_ratio_factorization(g),
            )
            row["factorization_gradient"] = mean_or_none(scores)
            row["factorization_gradient_ratio_of_means"] = ratio
        rows[stage] = row
    return rows
