"""Memories in outputs: superposition (section 3.3), kernels (equations 1-4)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis import kernels, schmidt, superposition
from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.gram import (
    compute_cosine_gram,
    compute_distance_gram,
    compute_overlap_gram,
    convert_to_similarity,
)
from tfcomp.analysis.kernel_anova import summarize_anova
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.analysis.superposition import FAR
from tfcomp.evaluation.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report.findings import describe_kernels, describe_superposition
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row, show_run


def make_kernels(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits, alignment, regression = [], [], []
    # Matrices of all pairs of points: few stand for a sample.
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
        "The similarity of outputs at any two grid points (at most "
        f"{FEW_POINTS:,} where they are a sample). A model that treats the "
        "factors apart has the binary factorized kernel (of x and y, half for "
        "sharing x, half for sharing y); one that memorizes combinations the "
        "conjunctive one. Images are made bright (background 0; without a "
        "background, the mean training image is taken off).",
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
        "Of two ordered factors, the share of the squared norm of the kernel "
        "that the best sum of so many products k(x, x') k(y, y') explains. The "
        "table has the shares in its variance of terms that need one factor, "
        "two factors and more (appendix A.5 of the paper): "
        "factorization_ratio (equation 35) is that of single factors, 1 for "
        "an additive kernel. The effective rank is the exponential of the "
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


def make_superposition(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether OOD outputs are sums of what was memorized."""
    rows = [r for s in analyses if s.has_hole for r in list_scores(s)]
    table = Exhibit(
        "superposition",
        "Scores",
        "R² of OOD outputs on predictors made from the model's own ID "
        "outputs, averaged over OOD points. superposition combines the mean "
        "outputs sharing each of the factors (the explorer maps it); "
        "superposition_span all outputs sharing one (at most "
        f"{superposition.MAX_MEMORIES}), with nonnegative weights; the "
        "conjunctive predictors as many outputs of the nearest ID points; "
        "superposed_inputs what the model draws for the mean codes of the ID "
        "points sharing each factor. multiple_peaks: the share of outputs with "
        "two peaks or more. Rows of the truth have true images in place of OOD "
        f"outputs; far points are at least {FAR:g} grid steps from ID.",
        rows=rows,
    )
    return Section(
        "superposition",
        "Superposition",
        "Is an output at a held-out position the sum of memorized outputs "
        "that share one of its factors each, as its x and its y? Images are "
        "made bright (background 0; without a background, the mean training "
        "image is taken off). R² is 1 - SSE/SST about zero, so it does not "
        "depend on how faint an output is. A true composer scores near 0. Of "
        f"three factors and more, {superposition.MAX_POINTS} held-out points "
        "are scored.",
        [table] if rows else [],
        describe_superposition(rows),
    )


def list_scores(analysis: RunAnalysis) -> list[Row]:
    """Lists the scores of a run and, for comparison, of a true composer."""
    known = analysis.bright_outputs[analysis.splits.is_id]
    is_ood = analysis.splits.is_ood
    rows = []
    for name, scores, unseen in (
        ("model", analysis.superposition, analysis.bright_outputs[is_ood]),
        ("truth", analysis.composed, analysis.bright_truth[is_ood]),
    ):
        inputs = np.full(len(unseen), np.nan)
        if analysis.superposed_inputs is not None:
            pair = unseen, analysis.superposed_inputs
            inputs = superposition.score_combinations(*pair, known)
        is_multiple = np.full(len(unseen), np.nan)
        if analysis.dataset.has_position:
            images = unseen.reshape(-1, *analysis.dataset.image_shape)
            counts = count_own_peaks(images, "bright")
            is_multiple = np.where(np.isfinite(counts), counts > 1, np.nan)
        for points, distance in (("all", 0.0), ("far", FAR)):
            chosen = scores.distance >= distance
            if not chosen.any():
                continue
            found = superposition.summarize_superposition(scores, distance)
            r2 = {key: found[f"{key}_r2"] for key in superposition.PREDICTORS}
            finite = inputs[chosen & np.isfinite(inputs)]
            rows.append(
                {
                    "run": analysis.name,
                    "OOD outputs": name,
                    "points": points,
                    **r2,
                    "superposed_inputs": mean_or_none(finite),
                    "multiple_peaks": mean_or_none(is_multiple[chosen]),
                    "blank_fraction": found["blank_fraction"],
                }
            )
    return rows
