"""Kernels of outputs beside ideal ones (equations 1-4)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis import kernels, schmidt
from tfcomp.analysis.gram import (
    compute_cosine_gram,
    compute_distance_gram,
    compute_overlap_gram,
    convert_to_similarity,
)
from tfcomp.analysis.kernel_anova import summarize_anova
from tfcomp.evaluation.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report.findings import describe_kernels
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row, show_run


def make_kernels(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits, alignment, regression = [], [], []
    # Of all pairs of points, so a sample is subsampled.
    for analysis in [
        analysis.for_pairs
        for analysis in analyses
        if analysis.for_pairs.has_hole
    ]:
        grams = compute_grams(analysis.bright_outputs)
        exhibits.append(make_matrices(analysis, grams))
        grams["truth, cosine"] = compute_cosine_gram(analysis.bright_truth)
        alignment += _list_alignments(analysis, grams)
        if analysis.is_plane:
            regression += _list_regressions(analysis)
        if analysis.splits.is_complete:
            exhibits.append(_make_terms(analysis, grams))
    tables = [
        Exhibit(
            "kernel_alignment",
            "Agreement with ideal kernels",
            "Centered kernel alignment over pairs of OOD points. The smooth "
            "ideal kernels have the overlap of two bumps in place of the "
            "Kronecker delta. The constant kernel scores 0 by definition.",
            rows=alignment,
        ),
        Exhibit(
            "kernel_regression",
            "Kernel regression from ID",
            "Ridge regression of the outputs (or of the true images) on the "
            "factors, fitted to ID points (a sample of 1,024 of more). The "
            "length scales (in grid steps, for each factor) and the ridge are "
            "chosen by leaving one out among ID points alone. r2_id is R² of "
            "the ID points left out, r2_ood that of OOD points. The additive "
            "kernel is a sum of functions of x and of y, the product kernel is "
            "Gaussian in both, and the radial one is Matérn 3/2 of the "
            "distance.",
            rows=regression,
        ),
    ]
    return Section(
        "kernels",
        "Kernels",
        "The similarity of outputs at all pairs of grid points (of a sample, "
        f"at most {FEW_POINTS:,} points). A model that separates the factors "
        "has the binary factorized kernel (1/2 for sharing x, 1/2 for sharing "
        "y). A model that memorizes combinations has the conjunctive kernel. "
        "The background is subtracted (without one, the mean training image).",
        [*(table for table in tables if table.rows), *exhibits],
        describe_kernels(alignment),
    )


def compute_grams(outputs: np.ndarray) -> dict[str, np.ndarray]:
    """Computes three similarities of all outputs, [n, n] each."""
    return {
        "cosine": compute_cosine_gram(outputs),
        "L2": convert_to_similarity(compute_distance_gram(outputs)),
        "overlap": compute_overlap_gram(outputs),
    }


def _list_alignments(
    analysis: RunAnalysis, grams: dict[str, np.ndarray]
) -> list[Row]:
    rows = []
    for name, gram in grams.items():
        found = analysis.align(gram)
        rows.append(
            {
                "run": analysis.name,
                "similarity": name,
                "factorized": found["alignment_factorized"],
                "conjunctive": found["alignment_conjunctive"],
                "factorized (smooth)": found.get("alignment_factorized_smooth"),
                "conjunctive (smooth)": found.get("alignment_radial"),
            }
        )
    return rows


def make_matrices(
    analysis: RunAnalysis, grams: dict[str, np.ndarray]
) -> Exhibit:
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
    return show_run(
        analysis,
        "gram",
        "Gram matrices",
        "Similarity of the outputs at all pairs of grid points: ID points "
        "first, then OOD points (behind the lines), x slowest in each. L2 is "
        "1 - distance / largest distance; overlap is intersection over union "
        "of the pixels above half the height of a bump. The table has means "
        "over pairs of different points, by the number of factors that they "
        "share.",
        figure,
        [
            {"similarity": name, **row}
            for name, gram in matrices.items()
            for row in average_pairs(analysis, gram)
        ],
    )


def average_pairs(analysis: RunAnalysis, gram: np.ndarray) -> list[Row]:
    """Averages over different points, by split and by shared factors."""
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


def _make_terms(analysis: RunAnalysis, grams: dict[str, np.ndarray]) -> Exhibit:
    grid, figure = analysis.splits.grid, None
    rows = [
        {
            "run": analysis.name,
            "similarity": name,
            **summarize_anova(gram, grid),
        }
        for name, gram in grams.items()
    ]
    if analysis.is_plane:
        shares = {}
        for row, (name, gram) in zip(rows, grams.items(), strict=True):
            row |= schmidt.summarize_schmidt(gram, grid)
            values = schmidt.compute_schmidt_values(gram, grid)
            shares[name] = schmidt.compute_explained_fraction(values)[:30]
        figure = draw_curves(
            np.arange(1, len(shares["cosine"]) + 1),
            shares,
            xlabel="number of product terms",
            ylabel="explained fraction",
        )
    return show_run(
        analysis,
        "schmidt" if figure else "kernel_orders",
        "Terms of the kernel",
        "For two ordered factors: the share of the squared norm of the kernel "
        "that the best sum of n products k(x, x') k(y, y') explains. The "
        "table divides the variance of the kernel into terms of one factor, "
        "two factors and more (appendix A.5 of the paper). "
        "factorization_ratio (equation 35) is the share of single factors, 1 "
        "for an additive kernel. The effective rank is the exponential of the "
        "entropy of the squared singular values.",
        figure,
        rows,
    )


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
