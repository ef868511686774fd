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
from tfcomp.evaluation.image_metrics import SUBSETS, Lists
from tfcomp.statistics.limits import POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.metric import computes

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis


@computes(
    "stages",
    POSITIVE,
    {
        f"log_volume_sd{key}": f"spread of log-volume, {text} points: standard "
        f"deviation of the log-volume over {text} points"
        for key, text in {"": "all grid", "_id": "ID", "_ood": "OOD"}.items()
    },
)
@computes(
    "stages",
    REAL,
    {
        f"log_volume_median_{key}": f"median log-volume, {text}: median over "
        f"{text} points, which a few dead ones do not move as they do the mean"
        for key, text in SUBSETS.items()
    },
)
@computes(
    "stages",
    SHARE,
    {
        f"floor_fraction_{key}": f"share at the floor, {text}: share of the "
        f"{text} points where some direction has less than the least length "
        "that counts"
        for key, text in SUBSETS.items()
    },
    better="low",
)
@computes(
    "stages",
    log_volume_difference="log-volume, OOD less ID: mean log-volume over OOD "
    "points less that over ID points",
)
@computes(
    "stages",
    POSITIVE,
    {
        f"log_volume_deviation_{key}": f"deviation of log-volume, {text}: mean "
        f"over {text} points of the distance of the log-volume to its median "
        "over ID"
        for key, text in SUBSETS.items()
    }
    | {
        f"log_volume_median_deviation_{key}": f"deviation, median, {text}: "
        f"median over {text} points of the distance of the log-volume to its "
        "median over ID: few points at the floor do not move it"
        for key, text in SUBSETS.items()
    },
)
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
    for name, rows in analysis.subsets.items():
        lists |= {
            f"log_volume_deviation_{name}": [
                mean_or_none(d[rows]) for d in distances
            ],
            f"log_volume_median_deviation_{name}": [
                median_or_none(d[rows]) for d in distances
            ],
            f"log_volume_median_{name}": [
                median_or_none(v[rows]) for v in volumes
            ],
            f"floor_fraction_{name}": [
                mean_or_none(find_floored(g[rows]))
                for g in analysis.metrics.values()
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
@computes(
    "stages",
    Limits(0.5, 1),
    better="high",
    scaled_factorization="factorization, factors per range: eq. 7 with every "
    "factor in units of its range: without them it rises to 1 when one factor "
    "is merely counted in smaller units",
)
@computes(
    "stages",
    SHARE,
    better="high",
    worst_pair_factorization="cosine form of the worst pair: of many factors, "
    "the least cosine form of all pairs: two merged ones hardly show in a mean "
    "over pairs",
)
@computes(
    "stages",
    SHARE,
    chance_factorization="cosine form of random directions: what the cosine "
    "form is for random directions in as many units: wide stages are near 1 by "
    "chance",
)
def compute_orthogonality(analysis: RunAnalysis) -> Lists:
    """Scores the angles between directions of factors (figures 2a to 2d)."""
    space = analysis.dataset.space
    if len(space.ordered) < 2:
        return {}  # of one direction there is nothing to factorize
    tensors = analysis.metrics.values()
    factors = [space.factors[column] for column in space.ordered]
    ranges = np.array([factor.high - factor.low for factor in factors])
    return {
        "factorization": [
            mean_or_none(compute_factorization(g)) for g in tensors
        ],
        "ratio_factorization": [
            compute_ratio_factorization(g) for g in tensors
        ],
        "scaled_factorization": [
            mean_or_none(compute_factorization(g * ranges[:, None] * ranges))
            for g in tensors
        ],
        "worst_pair_factorization": [
            min(compute_pair_scores(g).values()) for g in tensors
        ],
        "chance_factorization": [
            compute_chance(analysis.stage_sizes[stage])
            for stage in analysis.metrics
        ],
    }


GRADIENT = "by differences between grid points, per step, as the published code"


@computes(
    "stages",
    Limits(0.5, 1),
    better="high",
    factorization_gradient=f"factorization score, differences: eq. 7 {GRADIENT}"
    " takes them, mean over all grid points",
    factorization_gradient_ratio_of_means="factorization as published: the "
    "same differences, and the ratio of means of ratio_factorization",
)
@computes(
    "stages",
    REAL,
    {
        f"log_volume_gradient_{key}": f"log-volume, differences, {text}: mean "
        f"over {text} points, {GRADIENT} takes them"
        for key, text in SUBSETS.items()
    },
)
@computes(
    "stages",
    POSITIVE,
    {
        "log_volume_gradient_sd": "spread of log-volume, differences: standard "
        f"deviation over all grid points, {GRADIENT} takes them"
    }
    | {
        f"log_volume_gradient_median_deviation_{key}": "deviation, "
        f"differences, median, {text}: median over {text} points of the "
        f"distance of the log-volume to its median over ID, {GRADIENT} takes "
        "them"
        for key, text in SUBSETS.items()
    },
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
