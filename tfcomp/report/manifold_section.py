"""Manifolds of stages (figure 9b); embeddings (figures 3b, 3c, 6)."""

import sys
from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.manifolds import UMAP_HINT, compute_umaps, has_umap
from tfcomp.evaluation.pictures import picture_embedding
from tfcomp.evaluation.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.manifold_plots import draw_manifolds
from tfcomp.report import run_exhibits
from tfcomp.report.findings import describe_course, describe_ranks
from tfcomp.report.layer_section import has_numbers
from tfcomp.report.page import Section

EMBEDDING_CAPTIONS = {
    "embedding": "The matrix in pixel space that the network renders for each "
    "value of the factor. The title of a panel is the value, and all "
    "matrices share one color scale with 0 in its middle.",
    "profiles": "Profiles that hard rendering learned, a row of cells for each "
    "value, along the axes of the image. One axis should be in use.",
    "spectrum": "Singular values of every matrix, divided by the largest one. "
    "The thick line is the median over the values of the factor.",
}


def make_manifolds(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the combinations as points in the activations of every stage."""
    rows = run_exhibits.list_stages(
        analyses, lambda s, stage: dict(s.for_pairs.ranks[stage])
    )
    panels = {s.upper(): s for s in ("id", "ood") if has_numbers(rows, s)}
    draw = run_exhibits.draw_stage_rows
    ranks = Exhibit(
        "effective_rank",
        "Effective rank",
        "Participation ratio of the eigenvalues of the covariance of a "
        "stage's activations over ID and over OOD points. It grows with the "
        "number of points, so ID and OOD cannot be compared.",
        draw(rows, panels, "participation ratio") if panels else None,
        rows,
    )
    return Section(
        "manifolds",
        "Manifolds",
        "Every combination of factors is a point in the space of a stage's "
        f"activations; of a sample, at most {FEW_POINTS:,} are shown. "
        "The same data are in TensorBoard's projector tab.",
        [ranks, *map(make_pca, analyses)],
        describe_course(rows, "id", "the effective rank over ID points"),
    )


def make_umap(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the neighborhoods of points in every stage, by UMAP."""
    return Section(
        "umap",
        "UMAP",
        "UMAP preserves neighborhoods, not distances.",
        [shown for analysis in analyses for shown in try_umap(analysis)],
        "" if has_umap() else UMAP_HINT,
    )


def make_pca(analysis: RunAnalysis) -> Exhibit:
    """Draws the first two principal components of every stage."""
    analysis, shares, points = analysis.for_pairs, [], {}
    for stage, found in analysis.components.items():
        shares.append(f"{stage} {found.explained[:2].sum():.0%}")
        # A code of one unit has a line, at 0.
        missing = max(2 - found.features.shape[1], 0)
        points[stage] = np.pad(found.features[:, :2], ((0, 0), (0, missing)))
    return _show_points(
        analysis,
        "pca",
        "Principal components",
        "The first two principal components of the activations, colored by "
        "factor; the markers are ID and OOD. They explain this share of the "
        f"variance: {', '.join(shares)}.",
        points,
    )


def try_umap(analysis: RunAnalysis) -> list[Exhibit]:
    """Draws UMAP of every stage if it is installed and does not fail."""
    try:
        return [draw_umap(analysis)] if has_umap() else []
    except OSError as error:
        print(f"UMAP of {analysis.name} is left out: {error}", file=sys.stderr)
        return []


def draw_umap(analysis: RunAnalysis) -> Exhibit:
    """Draws UMAP of every stage."""
    analysis = analysis.for_pairs
    return _show_points(
        analysis,
        "umap",
        "UMAP",
        "UMAP of the first 50 principal components (15 neighbors, least "
        "distance 0.1, seed 42), colored by factor.",
        compute_umaps(analysis.components),
    )


def _show_points(
    analysis: RunAnalysis,
    kind: str,
    title: str,
    caption: str,
    points: dict[str, np.ndarray],
) -> Exhibit:
    """Draws and lists two coordinates of every grid point in every stage."""
    figure = draw_manifolds(
        points,
        analysis.splits.grid,
        analysis.splits.is_ood,
        space=analysis.dataset.space.factors,
        title=f"{analysis.name}, {kind.upper()}",
    )
    columns = {
        f"{stage}_{axis}": column
        for stage, values in points.items()
        for axis, column in enumerate(values.T, 1)
    }
    rows = run_exhibits.list_points(analysis, columns)
    return run_exhibits.show_run(analysis, kind, title, caption, figure, rows)


def make_embeddings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the matrices that forced rendering learned."""
    found = [(s, factor) for s in analyses for factor in s.embeddings]
    ranks = [
        {"run": s.name, "factor": factor, **s.embeddings[factor].summary}
        for s, factor in found
    ]
    return Section(
        "embeddings",
        "Embeddings in pixel space",
        "Forced rendering draws each factor value as a matrix of its own "
        "before it combines them.",
        [item for pair in found for item in show_embedding(*pair)],
        describe_ranks(ranks),
    )


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
            f"{kind}_{factor}",
            f"{kind.capitalize()} of {factor}",
            EMBEDDING_CAPTIONS[kind],
            figure,
            rows[kind],
        )
        for kind, figure in figures.items()
    ]
