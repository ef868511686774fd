"""Measures of what happens inside a model, most of them lists in the order of
the stages: see `measures`. Needs no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.gram import compute_neighbor_cosines
from tfcomp.analysis.similarity import summarize_similarity
from tfcomp.analysis.tuning import NO_TYPES, summarize_tuning
from tfcomp.evaluation.image_measures import Lists, Numbers, average
from tfcomp.statistics.limits import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    SHARE,
    Limits,
)
from tfcomp.statistics.metric import Chart, Metric, computes

if TYPE_CHECKING:
    from tfcomp.evaluation.run_analysis import RunAnalysis

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


@computes(
    Metric(
        "probe_r2_grid",
        "linear probes, R² over the grid",
        "out-of-fold R² of a ridge regression from the activations to "
        "the factors, over all grid points",
        limits=AT_MOST_ONE,
        better="high",
    ),
    of="stages",
)
def measure_probes(study: RunAnalysis) -> Lists:
    """Can the factors be read out by linear probes? (figures 2, 11 to 14)"""
    return {"probe_r2_grid": list(study.grid_probes.values())}


@computes(
    Metric(
        "neighbor_cosine",
        "cosine of neighboring embeddings",
        "mean cosine between the low-rank embeddings of neighboring values",
        limits=CORRELATION,
    ),
    of="run",
)
def measure_neighbors(study: RunAnalysis) -> Numbers:
    """How alike are the matrices of neighboring values? (figure 3)

    The mean over the values of a factor, then over ordered factors.
    """
    space, means = study.dataset.space, []
    for factor in (space.factors[column] for column in space.ordered):
        if factor.name in study.embeddings:
            matrices = study.embeddings[factor.name].matrices
            cosines = compute_neighbor_cosines(matrices, factor.periodic)
            means.append(mean_or_none(cosines))
    return {"neighbor_cosine": average(means)} if means else {}


@computes(
    Metric(
        "additive_share",
        "additive share of units",
        "share of the variance of a unit over the grid that is a sum of "
        "functions of single factors, mean over live units",
        limits=SHARE,
    ),
    Metric(
        "additive_share_weighted",
        "additive share of variance",
        "the same, units weighted by their variance",
        limits=SHARE,
    ),
    Metric(
        "interaction_share",
        "interaction, share of variance",
        "share of the variance over the grid that no sum of functions "
        "of single factors explains; it needs no derivative and sees "
        "kinks",
        limits=SHARE,
        chart=INTERACTIONS,
    ),
    Metric(
        "pair_share",
        "pair share of units",
        "share of interactions of two factors, mean over live units",
        limits=SHARE,
    ),
    Metric(
        "pair_share_weighted",
        "pair share of variance",
        "the same, units weighted by their variance",
        limits=SHARE,
    ),
    Metric(
        "product_share",
        "share of products",
        "share of units, weighted by variance, that a product a(x) b(y) "
        "fits better than a sum by more than .05 of their variance; "
        "units that neither fits to one half do not count",
        limits=SHARE,
    ),
    Metric(
        "sum_share",
        "share of sums",
        "likewise, that a sum a(x) + b(y) fits better than a product",
        limits=SHARE,
    ),
    Metric(
        "product_less_sum",
        "products less sums",
        "product_share less sum_share: 1 if all units are products, -1 "
        "if all are sums, whatever their width",
        limits=CORRELATION,
    ),
    of="stages",
)
def measure_tuning(study: RunAnalysis) -> Lists:
    """Do units answer to one factor or to combinations? (figures 4e, 15)

    Additive shares are 1 for stripes. Types of units exist for two factors,
    shares of pairs for more.
    """
    num_factors = len(study.dataset.space)
    if num_factors < 2 or not study.splits.is_complete:
        return {}  # of one factor everything is additive
    summaries = [summarize_tuning(t) for t in study.tuning.values()]
    names = {
        "additive_share": "additive_share_mean",
        "additive_share_weighted": "additive_share_weighted",
    }
    if num_factors == 2:
        names |= {name: name for name in NO_TYPES}
    else:
        names["pair_share"] = "pair_share_mean"
        names["pair_share_weighted"] = "pair_share_weighted"
    lists = {name: [s[key] for s in summaries] for name, key in names.items()}
    lists["interaction_share"] = [
        None if share is None else 1 - share
        for share in lists["additive_share_weighted"]
    ]
    return lists


@computes(
    Metric(
        "mixed_share",
        "mixed derivatives",
        "share of mixed ones in the squares of all first and second "
        "derivatives (exact); 0 for a sum over factors. It sees no "
        "kinks: behind a code of single factors a network of ReLUs has "
        "0 in every stage",
        limits=SHARE,
        chart=INTERACTIONS,
    ),
    Metric(
        "contrast",
        "contrast",
        "inner product of the absolute directions in which two factors "
        "move the units",
        limits=POSITIVE,
    ),
    Metric(
        "relative_contrast",
        "contrast of units",
        "overlap of the units that two factors move; it depends on the "
        "axes: a plane turned by 45 degrees has the worst value",
        limits=SHARE,
        chart=INTERACTIONS,
    ),
    Metric(
        "gaussian_curvature",
        "Gaussian curvature",
        "median over points of the Gaussian curvature of the surface "
        "that a stage makes of two factors",
    ),
    Metric(
        "total_curvature",
        "total curvature",
        "integral of the Gaussian curvature over the surface that a "
        "stage makes of two factors, which does not depend on its size: "
        "0 for a plane, also a rolled-up one, and 2π for half a sphere. "
        "It sees no kinks either",
        chart=CURVATURE,
    ),
    of="stages",
)
def measure_interaction(study: RunAnalysis) -> Lists:
    """Does a factor change what another one does to a stage?"""
    stages = study.interactions.values()
    names = dict.fromkeys(name for numbers in stages for name in numbers)
    return {name: [numbers[name] for numbers in stages] for name in names}


@computes(
    *(
        Metric(
            f"image_{name}{key}",
            f"{text} to the image{null}",
            f"{text} between the stage and the image{null}",
            limits=limits,
        )
        for name, (limits, text) in SIMILARITIES.items()
        for key, null in (("", ""), ("_null", ", points permuted"))
    ),
    of="stages",
)
def measure_similarity(study: RunAnalysis) -> Lists:
    """How far is a stage from the image? See `tfcomp.analysis.similarity`."""
    image = study.shapes.get("image")
    if image is None:
        return {}
    found = [summarize_similarity(s, image) for s in study.shapes.values()]
    names = [name for name in found[0] if not name.endswith("_p")]
    return {f"image_{name}": [row[name] for row in found] for name in names}


@computes(
    *(
        Metric(
            f"gap_{key}",
            f"{text}, inside the gap over outside",
            f"{text} along the curve of a stage, inside the gap over outside",
            limits=POSITIVE,
        )
        for key, text in GAPS.items()
    ),
    of="stages",
)
def measure_gap(study: RunAnalysis) -> Lists:
    """Does the curve of a stage jump in the gap? (figure 9b)

    Numbers are 1 for a curve that does not know of the gap; a jump is a longest
    step far above 1. Means over the curves with a gap.
    """
    if not study.gaps:
        return {}
    stages = [
        [study.compare_gap(curve, stage) for curve in study.gaps]
        for stage in study.stages
    ]
    return {
        f"gap_{key}": [
            average(ratios[f"{key}_ratio"] for ratios in stage)
            for stage in stages
        ]
        for key in GAPS
    }


@computes(
    Metric(
        "axis_ratio",
        "ratio of axes",
        "norm of the profiles of hard rendering along the stronger axis "
        "over that along the weaker one, of the factor in which they "
        "are closest",
        limits=Limits(1),
    ),
    of="run",
)
def measure_axes(study: RunAnalysis) -> Numbers:
    """How clearly hard rendering has found the axes, known on ID alone."""
    found = [e.summary.get("ratio") for e in study.embeddings.values()]
    ratios = [ratio for ratio in found if ratio is not None]
    return {"axis_ratio": min(ratios)} if ratios else {}
