"""Metrics of the geometry of stages; imports no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis.features import mean_or_none, median_or_none
from tfcomp.analysis.geometry import (
    FACTORIZATION,
    compute_chance,
    compute_factorization,
    compute_log_volume,
    compute_pair_scores,
    compute_ratio_factorization,
    find_floored,
)
from tfcomp.evaluation.image_metrics import Lists
from tfcomp.statistics.limits import POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.metric import computes

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
def compute_volume_spread(analysis: RunAnalysis) -> Lists:
    """Tests how evenly a stage spreads the factors (section 3.4, figure 2e).

    The spread of log sqrt(det g) is 0 for a manifold that is stretched alike
    everywhere, whatever its scale. A fold loses volume at some points and gains
    it at others, so that the deviation shows it and no mean does.
    """
    is_id, is_ood = analysis.splits.is_id, analysis.splits.is_ood
    volumes = list(analysis.log_volume.values())
    subsets = {"": is_id | is_ood, "_id": is_id, "_ood": is_ood}
    lists: Lists = {
        f"log_volume_sd{suffix}": [
            float(np.std(v[rows])) if rows.any() else None for v in volumes
        ]
        for suffix, rows in subsets.items()
    }
    both = is_id.any() and is_ood.any()
    lists["log_volume_difference"] = [
        v[is_ood].mean() - v[is_id].mean() if both else None for v in volumes
    ]
    distances = [np.abs(v - np.median(v[is_id])) for v in volumes]
    tensors = analysis.metrics.values()
    for name, rows in analysis.subsets.items():
        far = [distance[rows] for distance in distances]
        lists |= {
            f"log_volume_deviation_{name}": [*map(mean_or_none, far)],
            f"log_volume_median_deviation_{name}": [*map(median_or_none, far)],
            f"log_volume_median_{name}": [
                median_or_none(v[rows]) for v in volumes
            ],
            f"floor_fraction_{name}": [
                mean_or_none(find_floored(g[rows])) for g in tensors
            ],
        }
    return lists


@computes(
    "stages",
    Limits(0.5, 1),
    better="high",
    chart=FACTORIZATION,
    ratio_factorization="factorization, ratio of means: the score as the "
    "published code computes it, for comparison: it divides the mean of |g_xy| "
    "by the mean of g_xx + g_yy, so that points with long directions dominate",
)
@computes("stages", Limits(0.5, 1), "scaled_factorization", better="high")
@computes("stages", SHARE, "worst_pair_factorization", better="high")
@computes("stages", SHARE, "chance_factorization")
def compute_orthogonality(analysis: RunAnalysis) -> Lists:
    """Scores the angles between directions of factors (figures 2a to 2d)."""
    space = analysis.dataset.space
    if len(space.ordered) < 2:
        return {}  # of one direction there is nothing to factorize
    tensors = analysis.metrics.values()
    factors = [space.factors[column] for column in space.ordered]
    ranges = np.array([factor.high - factor.low for factor in factors])
    scaled = [g * ranges[:, None] * ranges for g in tensors]
    sizes = [analysis.stage_sizes[stage] for stage in analysis.metrics]
    return {
        "factorization": [
            mean_or_none(compute_factorization(g)) for g in tensors
        ],
        "ratio_factorization": [*map(compute_ratio_factorization, tensors)],
        "scaled_factorization": [
            mean_or_none(compute_factorization(g)) for g in scaled
        ],
        "worst_pair_factorization": [
            min(compute_pair_scores(g).values()) for g in tensors
        ],
        "chance_factorization": [*map(compute_chance, sizes)],
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
def compute_gradient_geometry(analysis: RunAnalysis) -> Lists:
    """Scores a geometry without derivatives, to compare with published ones."""
    tensors = list(analysis.gradient_metrics.values())
    if not tensors:
        return {}  # there is no complete grid
    volumes = [compute_log_volume(g) for g in tensors]
    is_id = analysis.splits.is_id
    distances = [np.abs(v - np.median(v[is_id])) for v in volumes]
    lists: Lists = {"log_volume_gradient_sd": [float(v.std()) for v in volumes]}
    for name, rows in analysis.subsets.items():
        lists |= {
            f"log_volume_gradient_{name}": [
                mean_or_none(v[rows]) for v in volumes
            ],
            f"log_volume_gradient_median_deviation_{name}": [
                median_or_none(d[rows]) for d in distances
            ],
        }
    if len(analysis.dataset.space.ordered) > 1:
        lists["factorization_gradient"] = [
            mean_or_none(compute_factorization(g)) for g in tensors
        ]
        lists["factorization_gradient_ratio_of_means"] = [
            compute_ratio_factorization(g) for g in tensors
        ]
    return lists
