"""Interactions of factors in stages and units, and similarity of stages."""

import itertools
from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.similarity import summarize_similarity
from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.figures.tuning_plots import draw_index_distribution
from tfcomp.report import run_exhibits
from tfcomp.report.layer_section import make_charts
from tfcomp.report.page import Section

# Columns of the tables that no chart shows.
SHOWN = ("contrast", "gaussian_curvature")
SIMILARITIES = {"debiased CKA": "cka", "Procrustes": "procrustes", "RSA": "rsa"}
CAPTION = (
    "On a sample of the grid, invariant to rotation and scale: debiased "
    "linear CKA, orthogonal Procrustes distance d (0 for equal shapes, "
    "at most √2; in maps 1 - d²/2), and rank correlation of the distances "
    "between points (RSA). In the table, _null is the mean over permutations "
    "of the points of one side, and _p the share of permutations with at least "
    "the same similarity (no less than 0.05)."
)
TUNING_LABEL = "additive share of variance"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def make_interactions(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows interactions of factors, and the similarity of stages."""
    several = [s for s in analyses if len(s.dataset.space) > 1]
    exhibits = make_charts(several, "interactions", SHOWN)
    exhibits += [_make_similarities(analysis) for analysis in analyses]
    groups: dict[bytes, list[RunAnalysis]] = {}
    for analysis in analyses:
        groups.setdefault(analysis.compared_points.tobytes(), []).append(
            analysis
        )
    exhibits += [
        _make_comparison(group, f"similarity_{number}")
        for number, group in enumerate(groups.values())
        if len(group) > 1
    ]
    name = "the share of interactions in the variance"
    return Section(
        "interactions",
        "Interactions and similarity",
        "Does the effect of one factor depend on another? A decoder that is a "
        "sum over factors has no interactions. Are two stages, or the same "
        "stage of two runs, equal up to a rotation?",
        exhibits,
        run_exhibits.describe_column(exhibits, "interaction_share", name),
    )


def _make_similarities(analysis: RunAnalysis) -> Exhibit:
    rows, count = analysis.similarities, len(analysis.stages)
    maps = np.tile(np.eye(count), (len(SIMILARITIES), 1, 1))
    for found in rows:
        i, j = (analysis.stages.index(found[key]) for key in ("stage", "other"))
        maps[:, i, j] = [found[name] for name in SIMILARITIES.values()]
        maps[1, i, j] = 1 - maps[1, i, j] ** 2 / 2
        maps[:, j, i] = maps[:, i, j]
    panels = dict(zip(SIMILARITIES, maps, strict=True))
    figure = draw_gram_matrices(panels, count, names=analysis.stages)
    what = "similarity", "Similarity of stages", CAPTION
    return run_exhibits.show_run(analysis, *what, figure, rows)


def _make_comparison(analyses: Sequence[RunAnalysis], name: str) -> Exhibit:
    rows = [
        {
            "run": f"{first.name} and {second.name}",
            "stage": stage,
            **summarize_similarity(first.shapes[stage], second.shapes[stage]),
        }
        for first, second in itertools.combinations(analyses, 2)
        for stage in first.stages
        if stage in second.stages
    ]
    label = "similarity, distance"
    figure = run_exhibits.draw_stage_rows(rows, SIMILARITIES, label)
    return Exhibit(name, "The same stage of two runs", CAPTION, figure, rows)


def make_tuning(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether units depend on factors additively."""
    analyses = [
        s for s in analyses if len(s.dataset.space) > 1 and s.splits.is_complete
    ]
    exhibits = [_make_shares(analyses)] if analyses else []
    exhibits += [_make_distribution(analysis) for analysis in analyses]
    name = "the additive share of a unit"
    return Section(
        "tuning",
        "Tuning",
        "The additive share of a unit is the part of its variance over the "
        "grid that a sum of functions of single factors explains. It is 1 "
        "for a stripe and 0 for a purely conjunctive unit; a bump one pixel "
        "wide has 0.22. It needs every combination: runs that are evaluated "
        "on a sample are left out.",
        exhibits,
        run_exhibits.describe_column(exhibits, "additive_share_mean", name),
    )


def _make_shares(analyses: Sequence[RunAnalysis]) -> Exhibit:
    rows = run_exhibits.list_stages(
        analyses, lambda s, name: summarize_tuning(s.tuning[name])
    )
    panels = {"": "additive_share_mean"}
    return Exhibit(
        "additive_share",
        "From stripes to bumps",
        "Additive share of variance, averaged over the units of a stage that "
        "vary. In the table, pair_share_mean is the share of interactions of "
        "two factors (the rest is of higher order), and dead_unit_fraction "
        "the share of units that do not vary.",
        run_exhibits.draw_stage_rows(rows, panels, TUNING_LABEL),
        rows,
    )


def _make_distribution(analysis: RunAnalysis) -> Exhibit:
    shares = {stage: t.additive_share for stage, t in analysis.tuning.items()}
    rows = [
        {"stage": stage, "quantile": q, "additive_share": float(value)}
        for stage, values in shares.items()
        if np.isfinite(values).any()
        for q, value in zip(
            QUANTILES, np.nanquantile(values, QUANTILES), strict=True
        )
    ]
    return run_exhibits.show_run(
        analysis,
        "additive_share",
        "Additive share of all units",
        "Distribution of the additive share over the units of every stage, "
        "with its mean and its median. Units that do not vary are left out; "
        "their share is written above.",
        draw_index_distribution(
            shares, label=TUNING_LABEL, title=analysis.name
        ),
        rows,
    )
