"""Kernels of outputs (equations 1-4), manifolds of stages, embeddings."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from tfcomp.analysis import kernels, schmidt
from tfcomp.analysis.manifolds import UMAP_HINT, compute_umaps, has_umap
from tfcomp.evaluation.pictures import picture_embedding
from tfcomp.evaluation.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.manifold_plots import draw_manifolds
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report import findings, run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row
from tfcomp.report.stage_section import has_numbers

Grams = dict[str, np.ndarray]


def make_kernels(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits, alignment, regression = [], [], []
    # Of all pairs of points, so a sample is subsampled.
    for analysis in [a.for_pairs for a in analyses if a.for_pairs.has_hole]:
        grams = compute_grams(analysis.bright_outputs)
        exhibits.append(make_matrices(analysis, grams))
        grams["truth, cosine"] = kernels.compute_cosine_gram(
            analysis.bright_truth
        )
        alignment += _list_alignments(analysis, grams)
        if analysis.is_plane:
            regression += _list_regressions(analysis)
        if analysis.splits.is_complete:
            exhibits.append(_make_terms(analysis, grams))
    tables = [
        make_exhibit("kernel_alignment", rows=alignment),
        make_exhibit("kernel_regression", rows=regression),
    ]
    return make_section(
        "kernels",
        [*tables, *exhibits],
        findings.describe_kernels(alignment),
        points=FEW_POINTS,
    )


def compute_grams(outputs: np.ndarray) -> Grams:
    """Computes three similarities of all outputs, [n, n] each."""
    return {
        "cosine": kernels.compute_cosine_gram(outputs),
        "L2": kernels.convert_to_similarity(
            kernels.compute_distance_gram(outputs)
        ),
        "overlap": kernels.compute_overlap_gram(outputs),
    }


def _list_alignments(analysis: RunAnalysis, grams: Grams) -> list[Row]:
    columns = {
        "factorized": "alignment_factorized",
        "conjunctive": "alignment_conjunctive",
        "factorized (smooth)": "alignment_factorized_smooth",
        "conjunctive (smooth)": "alignment_radial",
    }
    rows = []
    for name, gram in grams.items():
        scores = analysis.align(gram)
        row = {"run": analysis.name, "similarity": name}
        rows.append(row | {c: scores.get(key) for c, key in columns.items()})
    return rows


def make_matrices(analysis: RunAnalysis, grams: Grams) -> Exhibit:
    """Shows Gram matrices beside the ideal ones, ID first, then OOD."""
    is_ood, grid = analysis.splits.is_ood, analysis.splits.grid
    order = np.argsort(is_ood, kind="stable")
    matrices = {
        **grams,
        "binary factorized": kernels.make_factorized_kernel(grid),
        "conjunctive": kernels.make_conjunctive_kernel(grid),
    }
    figure = draw_gram_matrices(
        {name: gram[np.ix_(order, order)] for name, gram in matrices.items()},
        num_id=int((~is_ood).sum()),
        title=analysis.name,
    )
    rows = [
        {"similarity": name, **row}
        for name, gram in matrices.items()
        for row in _average_pairs(analysis, gram)
    ]
    return run_exhibits.show_run(analysis, "gram", figure, rows)


def _average_pairs(analysis: RunAnalysis, gram: np.ndarray) -> list[Row]:
    grid, is_ood = analysis.splits.grid, analysis.splits.is_ood
    shared = (grid[:, None] == grid[None]).sum(axis=2)  # [n, n]
    pairs = is_ood[:, None].astype(int) + is_ood[None]
    rows = []
    for split, kind in enumerate(("ID-ID", "ID-OOD", "OOD-OOD")):
        for count in range(grid.shape[1]):
            chosen = (pairs == split) & (shared == count)
            mean = float(gram[chosen].mean()) if chosen.any() else None
            rows.append({"points": kind, "shared factors": count, "mean": mean})
    return rows


def _make_terms(analysis: RunAnalysis, grams: Grams) -> Exhibit:
    grid, figure = analysis.splits.grid, None
    rows = {
        name: {
            "run": analysis.name,
            "similarity": name,
            **schmidt.summarize_anova(gram, grid),
        }
        for name, gram in grams.items()
    }
    if analysis.is_plane:
        shares = {}
        for name, gram in grams.items():
            rows[name] |= schmidt.summarize_schmidt(gram, grid)
            values = schmidt.compute_schmidt_values(gram, grid)
            shares[name] = schmidt.compute_explained_fraction(values)[:30]
        figure = draw_curves(
            np.arange(1, len(shares["cosine"]) + 1),
            shares,
            xlabel="number of product terms",
            ylabel="explained fraction",
        )
    return run_exhibits.show_run(analysis, "schmidt", figure, [*rows.values()])


def _list_regressions(analysis: RunAnalysis) -> list[Row]:
    return [
        {
            "run": analysis.name,
            "target": target,
            "kernel": name,
            "scales": " ".join(f"{scale:g}" for scale in fit.scales),
            "ridge": fit.ridge,
            "r2_id": fit.r2_id,
            "r2_ood": fit.r2_ood,
        }
        for target, fits in analysis.kernel_fits.items()
        for name, fit in fits.items()
    ]


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
        findings.describe_course(
            rows, "id", "the effective rank over ID points"
        ),
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
    return make_section("embeddings", exhibits, findings.describe_ranks(ranks))


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
