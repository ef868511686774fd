"""Metrics of what happens inside a model; imports no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.kernels import compute_neighbor_cosines
from tfcomp.analysis.similarity import summarize_similarity
from tfcomp.analysis.tuning import NO_TYPES, summarize_tuning
from tfcomp.evaluation.image_metrics import Numbers, Rows, average
from tfcomp.statistics.metric import (
    AT_MOST_ONE,
    CORRELATION,
    POSITIVE,
    REAL,
    SHARE,
    Chart,
    Limits,
    computes,
)

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


@computes("stages", AT_MOST_ONE, "probe_r2_grid", better="high")
@computes("stages", SHARE, "probe_r2_fitted")
def compute_grid_probes(analysis: RunAnalysis) -> Rows:
    """Scores linear probes of the factors (figures 2, 11 to 14)."""
    return analysis.grid_probes


@computes("run", CORRELATION, "neighbor_cosine")
def compute_neighbors(analysis: RunAnalysis) -> Numbers:
    """Compares low-rank embeddings of neighboring values (figure 3)."""
    space, means = analysis.dataset.space, []
    for factor in (space.factors[column] for column in space.ordered):
        if factor.name in analysis.embeddings:
            matrices = analysis.embeddings[factor.name].matrices
            cosines = compute_neighbor_cosines(matrices, factor.periodic)
            means.append(mean_or_none(cosines))
    return {"neighbor_cosine": average(means)} if means else {}


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
        rows[stage] = {
            "additive_share": found["additive_share_mean"],
            "additive_share_weighted": share,
            "interaction_share": None if share is None else 1 - share,
        }
        if num_factors == 2:
            rows[stage] |= {name: found[name] for name in NO_TYPES}
        else:
            rows[stage]["pair_share"] = found["pair_share_mean"]
            pairs = found["pair_share_weighted"]
            rows[stage]["pair_share_weighted"] = pairs
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
@computes("stages", REAL, "gaussian_curvature")
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
    """Compares stages with the image, by `tfcomp.analysis.similarity`."""
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
    "stages",
    POSITIVE,
    "gap_speed gap_max_speed gap_turning gap_max_turning",
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


@computes("run", Limits(1), "axis_ratio")
def compute_axis_ratio(analysis: RunAnalysis) -> Numbers:
    """Tests how clearly hard rendering separates axes, by ID alone."""
    summaries = (e.summary for e in analysis.embeddings.values())
    ratios = [r for s in summaries if (r := s.get("ratio")) is not None]
    return {"axis_ratio": min(ratios)} if ratios else {}
