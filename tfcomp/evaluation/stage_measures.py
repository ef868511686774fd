"""Measures of what happens inside a model, most of them one per stage.

A function maps a study to lists of numbers by name, in the order of the
stages, or to nothing where it does not apply; see `measures`. It declares
them here, which needs no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis.finite import mean_or_none
from tfcomp.analysis.geometry import (
    FACTORIZATION,
    HALF,
    compute_chance,
    compute_factorization,
    compute_pair_scores,
    compute_ratio_factorization,
    find_floored,
)
from tfcomp.analysis.gram import compute_neighbor_cosines
from tfcomp.analysis.similarity import summarize_similarity
from tfcomp.analysis.tuning import NO_TYPES, summarize_tuning
from tfcomp.evaluation.gaps import compare_gap, list_gaps
from tfcomp.evaluation.image_measures import Lists, Numbers, average
from tfcomp.statistics.limits import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    REAL,
    SHARE,
    Limits,
)
from tfcomp.statistics.measure import Chart, Measure, declare

if TYPE_CHECKING:
    from tfcomp.evaluation.study import Study

INTERACTIONS = Chart(
    "interactions",
    "Interactions of factors",
    "interaction (0: none)",
    "A one-hot code has no derivatives; the others are by factors in units of "
    "their ranges.",
    "interactions",
)
CURVATURE = Chart(
    "curvature",
    "Gaussian curvature",
    "total curvature",
    "Of two factors.",
    "interactions",
)
SUBSETS = {"": "all grid", "_id": "ID", "_ood": "OOD"}
# What compares a stage with the image: range, and what it is.
SIMILARITIES = {
    "cka": (AT_MOST_ONE, "debiased linear CKA"),
    "procrustes": (Limits(0.0, 2**0.5), "Procrustes distance"),
    "rsa": (CORRELATION, "rank correlation of distances (RSA)"),
}
GAPS = {
    "speed": "median step",
    "max_speed": "largest step",
    "turning": "median angle between steps",
    "max_turning": "largest angle between steps",
}


@declare(
    *(
        Measure(
            f"log_volume_sd{suffix}",
            f"spread of log-volume, {text} points",
            POSITIVE,
            f"standard deviation of the log-volume over {text} points",
            per="stage",
        )
        for suffix, text in SUBSETS.items()
    ),
    *(
        Measure(
            f"log_volume_median_{subset}",
            f"median log-volume, {subset.upper()}",
            REAL,
            f"median over {subset.upper()} points, which a few dead ones do "
            "not move as they do the mean",
            per="stage",
        )
        for subset in ("id", "ood")
    ),
    *(
        Measure(
            f"floor_fraction_{subset}",
            f"share at the floor, {subset.upper()}",
            SHARE,
            f"share of the {subset.upper()} points where some direction has "
            "less than the least length that counts",
            per="stage",
            better="low",
        )
        for subset in ("id", "ood")
    ),
    Measure(
        "log_volume_difference",
        "log-volume, OOD less ID",
        REAL,
        "mean log-volume over OOD points less that over ID points",
        per="stage",
    ),
    *(
        Measure(
            f"log_volume_deviation_{subset}",
            f"deviation of log-volume, {subset.upper()}",
            POSITIVE,
            f"mean over {subset.upper()} points of the distance of the "
            "log-volume to its median over ID",
            per="stage",
        )
        for subset in ("id", "ood")
    ),
    of="study",
)
def measure_log_volume(study: Study) -> Lists:
    """How evenly does a stage spread the factors? (section 3.4, figure 2e)

    `log_volume_sd`, `log_volume_sd_id`, `log_volume_sd_ood`: standard
    deviation of log sqrt(det g) over all, ID and OOD grid points; 0 for a
    manifold that is stretched everywhere alike, whatever its scale.
    `log_volume_difference`: mean over OOD less mean over ID points.
    `log_volume_median_id`, `floor_fraction_id`, and of OOD likewise: the
    median, and the share of points at the floor, of which each moves the mean
    by up to 14 over the number of points.
    `log_volume_deviation_id`, `log_volume_deviation_ood`: mean over these
    points of the distance to the median over ID. Where a manifold folds,
    volume is lost at some points and gained at others: neither shows in a
    mean, and the distance does not ask which.
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
        lists[f"log_volume_median_{name}"] = [
            np.median(v[rows]) if rows.any() else None for v in volumes
        ]
        lists[f"floor_fraction_{name}"] = [
            mean_or_none(find_floored(g[rows])) for g in study.metrics.values()
        ]
    return lists


@declare(
    Measure(
        "ratio_factorization",
        "factorization, ratio of means",
        HALF,
        "the score as the published code computes it, for comparison: it "
        "divides the mean of |g_xy| by the mean of g_xx + g_yy, so that points "
        "with long directions dominate",
        per="stage",
        better="high",
        chart=FACTORIZATION,
    ),
    Measure(
        "scaled_factorization",
        "factorization, factors per range",
        HALF,
        "eq. 7 with every factor in units of its range: without them it rises "
        "to 1 when one factor is merely counted in smaller units",
        per="stage",
        better="high",
    ),
    Measure(
        "worst_pair_factorization",
        "cosine form of the worst pair",
        SHARE,
        "of many factors, the least cosine form of all pairs: two merged ones "
        "hardly show in a mean over pairs",
        per="stage",
        better="high",
    ),
    Measure(
        "chance_factorization",
        "cosine form of random directions",
        SHARE,
        "what the cosine form is for random directions in as many units: wide "
        "stages are near 1 by chance",
        per="stage",
    ),
    of="study",
)
def measure_factorization(study: Study) -> Lists:
    """How orthogonal are the directions of the factors? (figures 2a to 2d)

    `factorization`: equation 7, mean over points, as `metrics.json` has it.
    `ratio_factorization`: with the ratio of means over points in place of
    the mean of ratios, as the published code has it, for comparison.
    `scaled_factorization`, `worst_pair_factorization` and
    `chance_factorization`: what makes it readable, see `geometry`.
    """
    if len(study.dataset.space.ordered) < 2:
        return {}  # of one direction there is nothing to factorize
    metrics = study.metrics.values()
    scores = [mean_or_none(compute_factorization(g)) for g in metrics]
    ratios = [compute_ratio_factorization(g) for g in metrics]
    ranges = np.array(
        [
            study.dataset.space.factors[column].high
            - study.dataset.space.factors[column].low
            for column in study.dataset.space.ordered
        ]
    )
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


@declare(
    Measure(
        "probe_r2_grid",
        "linear probes, R² over the grid",
        AT_MOST_ONE,
        "out-of-fold R² of a ridge regression from the activations to the "
        "factors, over all grid points",
        per="stage",
        better="high",
    ),
    of="study",
)
def measure_probes(study: Study) -> Lists:
    """Can the factors be read out by linear probes? (figures 2, 11 to 14)

    `probe_r2_grid`: out-of-fold R^2 over all grid points, ID and OOD. Those
    within ID and from ID to OOD are in `metrics.json`.
    """
    return {"probe_r2_grid": list(study.grid_probes.values())}


@declare(
    Measure(
        "neighbor_cosine",
        "cosine of neighboring embeddings",
        CORRELATION,
        "mean cosine between the low-rank embeddings of neighboring values",
    ),
    of="study",
)
def measure_neighbors(study: Study) -> Numbers:
    """How alike are the matrices of neighboring values? (figure 3)

    `neighbor_cosine`: mean cosine between the low-rank embeddings of
    neighboring values, over the values of a factor, then over factors.
    Values of a categorical factor have no neighbors.
    """
    space = study.dataset.space
    factors = [space.factors[column] for column in space.ordered]
    cosines = [
        compute_neighbor_cosines(study.embeddings[f.name].matrices, f.periodic)
        for f in factors
        if f.name in study.embeddings
    ]
    means = [mean_or_none(values) for values in cosines]
    return {"neighbor_cosine": average(means)} if means else {}


@declare(
    Measure(
        "additive_share",
        "additive share of units",
        SHARE,
        "share of the variance of a unit over the grid that is a sum of "
        "functions of single factors, mean over live units",
        per="stage",
    ),
    Measure(
        "additive_share_weighted",
        "additive share of variance",
        SHARE,
        "the same, units weighted by their variance",
        per="stage",
    ),
    Measure(
        "interaction_share",
        "interaction, share of variance",
        SHARE,
        "share of the variance over the grid that no sum of functions of "
        "single factors explains; it needs no derivative and sees kinks",
        per="stage",
        chart=INTERACTIONS,
    ),
    Measure(
        "pair_share",
        "pair share of units",
        SHARE,
        "share of interactions of two factors, mean over live units",
        per="stage",
    ),
    Measure(
        "pair_share_weighted",
        "pair share of variance",
        SHARE,
        "the same, units weighted by their variance",
        per="stage",
    ),
    Measure(
        "product_share",
        "share of products",
        SHARE,
        "share of units, weighted by variance, that a product a(x) b(y) fits "
        "better than a sum by more than .05 of their variance; units that "
        "neither fits to one half do not count",
        per="stage",
    ),
    Measure(
        "sum_share",
        "share of sums",
        SHARE,
        "likewise, that a sum a(x) + b(y) fits better than a product",
        per="stage",
    ),
    Measure(
        "product_less_sum",
        "products less sums",
        CORRELATION,
        "product_share less sum_share: 1 if all units are products, -1 if all "
        "are sums, whatever their width",
        per="stage",
    ),
    of="study",
)
def measure_tuning(study: Study) -> Lists:
    """Do units answer to one factor or to combinations? (figures 4e, 15)

    `additive_share`: share of the variance of a unit over the grid that is a
    sum of functions of single factors, mean over live units; 1 for stripes.
    `additive_share_weighted`: the same, units weighted by their variance, and
    `interaction_share`, what this leaves of 1. Of two factors `product_share`,
    `sum_share` and `product_less_sum`, the types of units, of which the width
    of a unit is no part. Of
    more than two factors `pair_share`, `pair_share_weighted`: of interactions
    of two of them.
    """
    if len(study.dataset.space) < 2 or not study.splits.is_complete:
        return {}  # of one factor everything is additive
    summaries = [summarize_tuning(t) for t in study.tuning.values()]
    names = {
        "additive_share": "additive_share_mean",
        "additive_share_weighted": "additive_share_weighted",
    }
    if len(study.dataset.space) == 2:
        names |= {name: name for name in NO_TYPES}
    if len(study.dataset.space) > 2:
        names["pair_share"] = "pair_share_mean"
        names["pair_share_weighted"] = "pair_share_weighted"
    lists = {name: [s[key] for s in summaries] for name, key in names.items()}
    lists["interaction_share"] = [
        None if share is None else 1 - share
        for share in lists["additive_share_weighted"]
    ]
    return lists


@declare(
    Measure(
        "mixed_share",
        "mixed derivatives",
        SHARE,
        "share of mixed ones in the squares of all first and second "
        "derivatives (exact); 0 for a sum over factors. It sees no kinks: "
        "behind a code of single factors a network of ReLUs has 0 in every "
        "stage",
        per="stage",
        chart=INTERACTIONS,
    ),
    Measure(
        "contrast",
        "contrast",
        POSITIVE,
        "inner product of the absolute directions in which two factors move "
        "the units",
        per="stage",
    ),
    Measure(
        "relative_contrast",
        "contrast of units",
        SHARE,
        "overlap of the units that two factors move; it depends on the axes: "
        "a plane turned by 45 degrees has the worst value",
        per="stage",
        chart=INTERACTIONS,
    ),
    Measure(
        "gaussian_curvature",
        "Gaussian curvature",
        REAL,
        "median over points of the Gaussian curvature of the surface that a "
        "stage makes of two factors",
        per="stage",
    ),
    Measure(
        "total_curvature",
        "total curvature",
        REAL,
        "integral of the Gaussian curvature over the surface that a stage "
        "makes of two factors, which does not depend on its size: 0 for a "
        "plane, also a rolled-up one, and 2π for half a sphere. It sees no "
        "kinks either",
        per="stage",
        chart=CURVATURE,
    ),
    of="study",
)
def measure_interaction(study: Study) -> Lists:
    """Does a factor change what another one does to a stage?

    `mixed_share`, `contrast`, `relative_contrast` and, of two ordered factors,
    `gaussian_curvature` and `total_curvature`, from exact second derivatives;
    see `tfcomp.analysis.interaction`.
    """
    stages = study.interactions.values()
    names = dict.fromkeys(name for numbers in stages for name in numbers)
    return {name: [numbers[name] for numbers in stages] for name in names}


@declare(
    *(
        Measure(
            f"image_{name}{suffix}",
            f"{text} to the image{where}",
            limits,
            f"{text} between the stage and the image{where}",
            per="stage",
        )
        for name, (limits, text) in SIMILARITIES.items()
        for suffix, where in (("", ""), ("_null", ", points permuted"))
    ),
    of="study",
)
def measure_similarity(study: Study) -> Lists:
    """How far is a stage from the image?

    `image_cka`, `image_procrustes` and `image_rsa`, and under `..._null` the
    same for permuted points; see `tfcomp.analysis.similarity`.
    """
    image = study.shapes.get("image")
    if image is None:
        return {}
    found = [summarize_similarity(s, image) for s in study.shapes.values()]
    names = [name for name in found[0] if not name.endswith("_p")]
    return {f"image_{name}": [row[name] for row in found] for name in names}


@declare(
    *(
        Measure(
            f"gap_{name}",
            f"{text}, inside the gap over outside",
            POSITIVE,
            f"{text} along the curve of a stage, inside the gap over outside",
            per="stage",
        )
        for name, text in GAPS.items()
    ),
    of="study",
)
def measure_gap(study: Study) -> Lists:
    """Does the curve of a stage jump in the gap? (figure 9b)

    Inside the gap over outside, per stage: `gap_speed` and `gap_turning`
    (medians of steps and of angles between steps), `gap_max_speed` and
    `gap_max_turning` (the largest). 1 for a curve that does not know of the
    gap; a jump is a longest step far above 1. Means over the curves with a
    gap.
    """
    gaps = list_gaps(study)
    if not gaps:
        return {}
    stages = [
        [compare_gap(study, curve, stage) for curve in gaps]
        for stage in study.stages
    ]
    names = {
        "gap_speed": "speed_ratio",
        "gap_max_speed": "max_speed_ratio",
        "gap_turning": "turning_ratio",
        "gap_max_turning": "max_turning_ratio",
    }
    return {
        name: [average(ratios[key] for ratios in stage) for stage in stages]
        for name, key in names.items()
    }


@declare(
    Measure(
        "axis_ratio",
        "ratio of axes",
        Limits(low=1.0),
        "norm of the profiles of hard rendering along the stronger axis over "
        "that along the weaker one, of the factor in which they are closest",
    ),
    of="study",
)
def measure_axes(study: Study) -> Numbers:
    """How clearly hard rendering has found the axes, known on ID alone.

    `axis_ratio`: norm of the profiles along the stronger axis over that along
    the weaker one, of the factor in which they are closest.
    """
    found = [e.summary.get("ratio") for e in study.embeddings.values()]
    ratios = [ratio for ratio in found if ratio is not None]
    return {"axis_ratio": min(ratios)} if ratios else {}
