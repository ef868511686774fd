"""Manifolds of stages (figure 9b); embeddings (figures 3b, 3c, 6)."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from tfcomp.analysis.manifolds import UMAP_HINT, compute_umaps, has_umap
from tfcomp.evaluation.pictures import picture_embedding
from tfcomp.evaluation.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.manifold_plots import draw_manifolds
from tfcomp.report import run_exhibits
from tfcomp.report.findings import describe_course, describe_ranks
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.stage_section import has_numbers


def make_manifolds(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the combinations as points in the activations of every stage."""
    rows = run_exhibits.list_stages(
        analyses, lambda s, stage: dict(s.for_pairs.ranks[stage])
    )
    panels = {s.upper(): s for s in ("id", "ood") if has_numbers(rows, s)}
    draw = run_exhibits.draw_stage_rows
    figure = draw(rows, panels, "participation ratio") if panels else None
    return make_section(
        "manifolds",
        [
            make_exhibit("effective_rank", figure, rows),
            *map(make_pca, analyses),
        ],
        describe_course(rows, "id", "the effective rank over ID points"),
        points=FEW_POINTS,
    )


def make_umap(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the neighborhoods of points in every stage, by UMAP."""
    exhibits = [shown for analysis in analyses for shown in try_umap(analysis)]
    return make_section("umap", exhibits, "" if has_umap() else UMAP_HINT)


def make_pca(analysis: RunAnalysis) -> Exhibit:
    """Draws the first two principal components of every stage."""
    analysis, shares, points = analysis.for_pairs, [], {}
    for stage, components in analysis.components.items():
        shares.append(f"{stage} {components.explained[:2].sum():.0%}")
        # A code of one unit has a line, at 0.
        missing = max(2 - components.features.shape[1], 0)
        shown = components.features[:, :2]
        points[stage] = np.pad(shown, ((0, 0), (0, missing)))
    return _show_points(analysis, "pca", points, shares=", ".join(shares))


def try_umap(analysis: RunAnalysis) -> list[Exhibit]:
    """Draws UMAP of every stage if it is installed and does not fail."""
    analysis = analysis.for_pairs
    if not has_umap():
        return []
    try:
        points = compute_umaps(analysis.components)
        return [_show_points(analysis, "umap", points)]
    except OSError as error:
        print(f"UMAP of {analysis.name} is left out: {error}", file=sys.stderr)
        return []


def _show_points(
    analysis: RunAnalysis,
    kind: str,
    points: Mapping[str, np.ndarray],
    **values: str,
) -> Exhibit:
    figure = draw_manifolds(
        points,
        analysis.splits.grid,
        analysis.splits.is_ood,
        space=analysis.dataset.space.factors,
        title=f"{analysis.name}, {kind.upper()}",
    )
    columns = {
        f"{stage}_{axis}": column
        for stage, places in points.items()
        for axis, column in enumerate(places.T, 1)
    }
    rows = run_exhibits.list_points(analysis, columns)
    return run_exhibits.show_run(analysis, kind, figure, rows, **values)


def make_embeddings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the matrices that forced rendering learned."""
    pairs = [(s, factor) for s in analyses for factor in s.embeddings]
    ranks = [
        {"run": s.name, "factor": factor, **s.embeddings[factor].summary}
        for s, factor in pairs
    ]
    exhibits = [shown for pair in pairs for shown in show_embedding(*pair)]
    return make_section("embeddings", exhibits, describe_ranks(ranks))


def show_embedding(analysis: RunAnalysis, factor: str) -> list[Exhibit]:
    """Shows the matrices of one factor, their spectrum and profiles."""
    embedding = analysis.embeddings[factor]
    figures = picture_embedding(analysis.dataset.space[factor], embedding)
    rows = {
        "embedding": [{"factor": factor, **embedding.summary}],
        "spectrum": [
            {"value": value, "mode": mode, "singular_value": float(s)}
            for (value, mode), s in np.ndenumerate(embedding.spectrum)
        ],
        "profiles": [
            {"axis": axis, "value": value, "pixel": pixel, "profile": float(p)}
            for axis, array in embedding.profiles.items()
            for (value, pixel), p in np.ndenumerate(array)
        ],
    }
    return [
        run_exhibits.show_run(
            analysis,
            kind,
            figure,
            rows[kind],
            suffix=f"_{factor}",
            factor=factor,
        )
        for kind, figure in figures.items()
    ]
