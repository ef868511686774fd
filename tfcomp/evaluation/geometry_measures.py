"""Measures of the geometry of stages: volumes, and directions of factors.

See `stage_measures` for what their functions give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.geometry import (
    FACTORIZATION,
    compute_chance,
    compute_factorization,
    compute_pair_scores,
    compute_ratio_factorization,
    find_floored,
)
from tfcomp.evaluation.image_measures import SUBSETS, Lists
from tfcomp.statistics.limits import (
    POSITIVE,
    SHARE,
    Limits,
)
from tfcomp.statistics.metric import Metric, computes

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis


@computes(
    *(
        Metric(
            f"log_volume_sd{key}",
            f"spread of log-volume, {text} points",
            f"standard deviation of the log-volume over {text} points",
            limits=POSITIVE,
        )
        for key, text in {"": "all grid", "_id": "ID", "_ood": "OOD"}.items()
    ),
    *(
        Metric(
            f"log_volume_median_{key}",
            f"median log-volume, {text}",
            f"median over {text} points, which a few dead ones do not move "
            "as they do the mean",
        )
        for key, text in SUBSETS.items()
    ),
    *(
        Metric(
            f"floor_fraction_{key}",
            f"share at the floor, {text}",
            f"share of the {text} points where some direction has less than "
            "the least length that counts",
            limits=SHARE,
            better="low",
        )
        for key, text in SUBSETS.items()
    ),
    Metric(
        "log_volume_difference",
        "log-volume, OOD less ID",
        "mean log-volume over OOD points less that over ID points",
    ),
    *(
        Metric(
            f"log_volume_deviation_{key}",
            f"deviation of log-volume, {text}",
            f"mean over {text} points of the distance of the log-volume to "
            "its median over ID",
            limits=POSITIVE,
        )
        for key, text in SUBSETS.items()
    ),
    *(
        Metric(
            f"log_volume_median_deviation_{key}",
            f"deviation, median, {text}",
            f"median over {text} points of the distance of the log-volume to "
            "its median over ID: few points at the floor do not move it",
            limits=POSITIVE,
        )
        for key, text in SUBSETS.items()
    ),
    of="stages",
)
def measure_log_volume(study: RunAnalysis) -> Lists:
    """How evenly does a stage spread the factors? (section 3.4, figure 2e)

    The spread of log sqrt(det g) is 0 for a manifold that is stretched
    everywhere alike, whatever its scale. A fold loses volume at some points and
    gains it at others: no mean shows this, but the deviation does.
    """
    is_id, is_ood = study.splits.is_id, study.splits.is_ood
    volumes = list(study.log_volume.values())
    subsets = {"": is_id | is_ood, "_id": is_id, "_ood": is_ood}
    lists: Lists = {
        f"log_volume_sd{suffix}": [
            np.std(v[rows]) if rows.any() else None for v in volumes
        ]
        for suffix, rows in subsets.items()
    }
    both = is_id.any() and is_ood.any()
    lists["log_volume_difference"] = [
        v[is_ood].mean() - v[is_id].mean() if both else None for v in volumes
    ]
    distances = [np.abs(v - np.median(v[is_id])) for v in volumes]
    for name, rows in (("id", is_id), ("ood", is_ood)):
        lists[f"log_volume_deviation_{name}"] = [
            mean_or_none(d[rows]) for d in distances
        ]
        lists[f"log_volume_median_deviation_{name}"] = [
            np.median(d[rows]) if rows.any() else None for d in distances
        ]
        lists[f"log_volume_median_{name}"] = [
            np.median(v[rows]) if rows.any() else None for v in volumes
        ]
        lists[f"floor_fraction_{name}"] = [
            mean_or_none(find_floored(g[rows])) for g in study.metrics.values()
        ]
    return lists


@computes(
    Metric(
        "ratio_factorization",
        "factorization, ratio of means",
        "the score as the published code computes it, for comparison: "
        "it divides the mean of |g_xy| by the mean of g_xx + g_yy, so "
        "that points with long directions dominate",
        limits=Limits(0.5, 1),
        better="high",
        chart=FACTORIZATION,
    ),
    Metric(
        "scaled_factorization",
        "factorization, factors per range",
        "eq. 7 with every factor in units of its range: without them it "
        "rises to 1 when one factor is merely counted in smaller units",
        limits=Limits(0.5, 1),
        better="high",
    ),
    Metric(
        "worst_pair_factorization",
        "cosine form of the worst pair",
        "of many factors, the least cosine form of all pairs: two "
        "merged ones hardly show in a mean over pairs",
        limits=SHARE,
        better="high",
    ),
    Metric(
        "chance_factorization",
        "cosine form of random directions",
        "what the cosine form is for random directions in as many "
        "units: wide stages are near 1 by chance",
        limits=SHARE,
    ),
    of="stages",
)
def measure_factorization(study: RunAnalysis) -> Lists:
    """How orthogonal are the directions of the factors? (figures 2a to 2d)"""
    if len(study.dataset.space.ordered) < 2:
        return {}  # of one direction there is nothing to factorize
    metrics = study.metrics.values()
    scores = [mean_or_none(compute_factorization(g)) for g in metrics]
    ratios = [compute_ratio_factorization(g) for g in metrics]
    space = study.dataset.space
    factors = [space.factors[column] for column in space.ordered]
    ranges = np.array([factor.high - factor.low for factor in factors])
    scaled = [g * ranges[:, None] * ranges for g in metrics]
    return {
        "factorization": scores,
        "ratio_factorization": ratios,
        "scaled_factorization": [
            mean_or_none(compute_factorization(g)) for g in scaled
        ],
        "worst_pair_factorization": [
            min(compute_pair_scores(g).values()) for g in metrics
        ],
        "chance_factorization": [
            compute_chance(study.stage_sizes[stage]) for stage in study.metrics
        ],
    }
