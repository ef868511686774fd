"""Metrics of the stages of a model; imports no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.metrics import geometry
from tfcomp.metrics.features import mean_or_none, median_or_none
from tfcomp.metrics.image_metrics import Numbers, Rows, average
from tfcomp.metrics.metric import Chart, computes
from tfcomp.metrics.similarity import summarize_similarity
from tfcomp.metrics.tuning import NO_TYPES, summarize_tuning
from tfcomp.statistics.limits import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    SHARE,
    Limits,
)

if TYPE_CHECKING:
    from tfcomp.metrics.run_analysis import RunAnalysis

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


@computes(
    "stages",
    POSITIVE,
    "log_volume_sd log_volume_sd_id log_volume_sd_ood "
    "log_volume_deviation_id log_volume_deviation_ood "
    "log_volume_median_deviation_id log_volume_median_deviation_ood",
)
@computes(
    "stages",
    names="log_volume_median_id log_volume_median_ood log_volume_difference",
)
@computes("stages", SHARE, "floor_fraction_id floor_fraction_ood", better="low")
def compute_volume_spread(analysis: RunAnalysis) -> Rows:
    """Tests how evenly a stage spreads the factors (section 3.4, figure 2e)."""
    is_id, is_ood = analysis.splits.is_id, analysis.splits.is_ood
    both = is_id.any() and is_ood.any()
    rows: Rows = {}
    for stage, v in analysis.log_volume.items():
        row = rows[stage] = _spread("log_volume", v, analysis)
        difference = v[is_ood].mean() - v[is_id].mean() if both else None
        row["log_volume_difference"] = difference
        distance, g = np.abs(v - np.median(v[is_id])), analysis.metrics[stage]
        for name, chosen in analysis.subsets.items():
            sd = float(v[chosen].std()) if chosen.any() else None
            far, floored = distance[chosen], geometry.find_floored(g[chosen])
            row[f"log_volume_sd_{name}"] = sd
            row[f"log_volume_deviation_{name}"] = mean_or_none(far)
            row[f"log_volume_median_{name}"] = median_or_none(v[chosen])
            row[f"floor_fraction_{name}"] = mean_or_none(floored)
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
    factors = [f for f in analysis.dataset.space if not f.categorical]
    if len(factors) < 2:
        return {}  # of one direction there is nothing to factorize
    ranges = np.array([factor.high - factor.low for factor in factors])
    rows: Rows = {}
    for stage, g in analysis.metrics.items():
        scaled = geometry.compute_factorization(g * ranges[:, None] * ranges)
        chance = geometry.compute_chance(analysis.stage_sizes[stage])
        pairs = geometry.compute_pair_scores(g).values()
        rows[stage] = {
            "factorization": mean_or_none(geometry.compute_factorization(g)),
            "ratio_factorization": geometry.compute_ratio_factorization(g),
            "scaled_factorization": mean_or_none(scaled),
            "worst_pair_factorization": min(pairs),
            "chance_factorization": chance,
        }
    return rows


@computes(
    "stages",
    Limits(0.5, 1),
    "factorization_gradient factorization_gradient_ratio_of_means",
    better="high",
)
@computes("stages", names="log_volume_gradient_id log_volume_gradient_ood")
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
        row = rows[stage] = _spread("log_volume_gradient", volume, analysis)
        for name, chosen in analysis.subsets.items():
            row[f"log_volume_gradient_{name}"] = mean_or_none(volume[chosen])
        if len(analysis.dataset.space.ordered) > 1:
            scores = geometry.compute_factorization(g)
            ratio = geometry.compute_ratio_factorization(g)
            row["factorization_gradient"] = mean_or_none(scores)
            row["factorization_gradient_ratio_of_means"] = ratio
    return rows


@computes("stages", AT_MOST_ONE, "probe_r2_grid", better="high")
@computes("stages", SHARE, "probe_r2_fitted")
def compute_grid_probes(analysis: RunAnalysis) -> Rows:
    """Scores linear probes of the factors (figures 2, 11 to 14)."""
    return analysis.grid_probes


@computes("stages", SHARE, "additive_share additive_share_weighted")
@computes(
    "stages",
    SHARE,
    chart=INTERACTIONS,
    interaction_share="interaction, share of variance: share of the variance "
    "over the grid that no sum of functions of single factors explains; it "
    "needs no derivative and sees kinks",
)
@computes(
    "stages", SHARE, "pair_share pair_share_weighted product_share sum_share"
)
@computes("stages", CORRELATION, "product_less_sum")
def compute_tuning(analysis: RunAnalysis) -> Rows:
    """Tests if units answer to one factor or to several (figures 4e, 15)."""
    num_factors = len(analysis.dataset.space)
    if num_factors < 2 or not analysis.splits.is_complete:
        return {}  # of one factor everything is additive
    rows: Rows = {}
    for stage, tuning in analysis.tuning.items():
        found = summarize_tuning(tuning)
        share = found["additive_share_weighted"]
        row = rows[stage] = {
            "additive_share": found["additive_share_mean"],
            "additive_share_weighted": share,
            "interaction_share": None if share is None else 1 - share,
        }
        if num_factors == 2:
            row |= {name: found[name] for name in NO_TYPES}
        else:
            row["pair_share"] = found["pair_share_mean"]
            row["pair_share_weighted"] = found["pair_share_weighted"]
    return rows


@computes(
    "stages",
    SHARE,
    chart=INTERACTIONS,
    mixed_share="mixed derivatives: share of mixed ones in the squares of all "
    "first and second derivatives (exact); 0 for a sum over factors. It sees "
    "no kinks: behind a code of single factors a network of ReLUs has 0 in "
    "every stage",
    relative_contrast="contrast of units: overlap of the units that two "
    "factors move; it depends on the axes: a plane turned by 45 degrees has "
    "the worst value",
)
@computes("stages", POSITIVE, "contrast")
@computes("stages", names="gaussian_curvature")
@computes(
    "stages",
    chart=CURVATURE,
    total_curvature="total curvature: integral of the Gaussian curvature over "
    "the surface that a stage makes of two factors, which does not depend on "
    "its size: 0 for a plane, also a rolled-up one, and 2π for half a sphere. "
    "It sees no kinks either",
)
def compute_interaction(analysis: RunAnalysis) -> Rows:
    """Tests whether a factor changes the effect of another on a stage."""
    return analysis.interactions


@computes("stages", AT_MOST_ONE, "image_cka image_cka_null")
@computes(
    "stages", Limits(0.0, 2**0.5), "image_procrustes image_procrustes_null"
)
@computes("stages", CORRELATION, "image_rsa image_rsa_null")
def compute_similarity(analysis: RunAnalysis) -> Rows:
    """Compares stages with the image, by `tfcomp.metrics.similarity`."""
    image = analysis.shapes.get("image")
    if image is None:
        return {}
    return {
        stage: {
            f"image_{name}": value
            for name, value in summarize_similarity(shape, image).items()
            if not name.endswith("_p")
        }
        for stage, shape in analysis.shapes.items()
    }


@computes(
    "stages", POSITIVE, "gap_speed gap_max_speed gap_turning gap_max_turning"
)
def compute_gap(analysis: RunAnalysis) -> Rows:
    """Looks for jumps of the curve of a stage in the gap, far above 1 (9b)."""
    if not analysis.gaps:
        return {}
    curves = [analysis.compare_gap(curve) for curve in analysis.gaps]
    return {
        stage: {
            f"gap_{key}": average(row[stage][f"{key}_ratio"] for row in curves)
            for key in ("speed", "max_speed", "turning", "max_turning")
        }
        for stage in analysis.stages
    }
