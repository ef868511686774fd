"""Measures of every stage: volume and tuning (C9, C10, C13, C17, C18).

Lists have one number per stage, in the order of `stages`.
"""

from __future__ import annotations

import numpy as np

from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.evaluation.study import Study

Lists = dict[str, list[float | None]]


def measure_log_volume(study: Study) -> Lists:
    """How evenly does a stage spread the factors? (section 3.4, figure 2e)

    `log_volume_sd`, `log_volume_sd_id`, `log_volume_sd_ood`: standard
    deviation of log sqrt(det g) over all, ID and OOD grid points; 0 for a
    manifold that is stretched everywhere alike, whatever its scale.
    `log_volume_difference`: mean over OOD less mean over ID points.
    """
    subsets = {
        "": np.ones_like(study.splits.is_ood),
        "_id": study.splits.is_id,
        "_ood": study.splits.is_ood,
    }
    volumes = list(study.log_volume.values())
    lists: Lists = {
        f"log_volume_sd{suffix}": [_reduce(np.std, v[rows]) for v in volumes]
        for suffix, rows in subsets.items()
    }
    ood = [_reduce(np.mean, v[study.splits.is_ood]) for v in volumes]
    known = [_reduce(np.mean, v[study.splits.is_id]) for v in volumes]
    lists["log_volume_difference"] = [
        None if a is None or b is None else a - b
        for a, b in zip(ood, known, strict=True)
    ]
    return lists


def measure_tuning(study: Study) -> Lists:
    """Do units answer to one factor or to combinations? (figures 4e, 15)

    `additive_share`: share of the variance of a unit over the grid that is a
    sum of functions of single factors, mean over live units; 1 for stripes.
    `additive_share_weighted`: the same, units weighted by their variance.
    """
    if len(study.dataset.space) < 2:
        return {}  # of one factor everything is additive
    summaries = [summarize_tuning(t) for t in study.tuning.values()]
    return {
        "additive_share": [s["additive_share_mean"] for s in summaries],
        "additive_share_weighted": [
            s["additive_share_weighted"] for s in summaries
        ],
    }


def _reduce(function, values: np.ndarray) -> float | None:
    return float(function(values)) if values.size else None
