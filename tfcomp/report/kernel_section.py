"""The kernel that a model has learned (figures 1e, 8; equations 1-4, 35)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.gram import (
    compute_cosine_gram,
    compute_distance_gram,
    compute_overlap_gram,
    convert_to_similarity,
)
from tfcomp.analysis.kernel_anova import summarize_anova
from tfcomp.analysis.kernels import (
    make_conjunctive_kernel,
    make_factorized_kernel,
)
from tfcomp.analysis.schmidt import (
    compute_explained_fraction,
    compute_schmidt_values,
    summarize_schmidt,
)
from tfcomp.evaluation.study import FEW_POINTS, Study
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report.findings import describe_kernels
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row, show_run

SHOWN_TERMS = 30


def make_kernels(studies: Sequence[Study]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits, alignment, regression = [], [], []
    # Matrices of all pairs of points: few stand for a sample.
    for study in [study.few for study in studies]:
        if study.has_hole:
            grams = compute_grams(study.bright_outputs)
            exhibits.append(make_matrices(study, grams))
            grams["truth, cosine"] = compute_cosine_gram(study.bright_truth)
            alignment += list_alignments(study, grams)
            if study.is_plane:
                regression += list_regressions(study)
            if study.splits.is_complete:
                exhibits.append(make_terms(study, grams))
    if exhibits:
        tables = make_tables(alignment, regression)
        exhibits = [*(table for table in tables if table.rows), *exhibits]
    return Section(
        "kernels",
        "Kernels",
        "The similarity of outputs at any two grid points (at most "
        f"{FEW_POINTS:,} where they are a sample). A model that "
        "treats the factors apart has the binary factorized kernel (of x and "
        "y, half for sharing x, half for sharing y); one that memorizes "
        "combinations the conjunctive one. Images are made bright (background "
        "0; without a background, the mean training image is taken off).",
        exhibits,
        describe_kernels(alignment),
    )


def make_tables(alignment: list[Row], regression: list[Row]) -> list[Exhibit]:
    """Makes the tables of alignments and of kernel regressions."""
    return [
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
            "length scales (in grid steps, "
            "for each factor) and the ridge are chosen by leaving one out "
            "among ID points alone. r2_id is R² of the ID points left out, "
            "r2_ood that of OOD points. The additive kernel is a sum of "
            "functions of x and of y, the product kernel is Gaussian in both, "
            "and the radial one is Matérn 3/2 of the distance.",
            rows=regression,
        ),
    ]


def compute_grams(outputs: np.ndarray) -> dict[str, np.ndarray]:
    """Computes three similarities of all outputs, [n, n] each."""
    return {
        "cosine": compute_cosine_gram(outputs),
        "L2": convert_to_similarity(compute_distance_gram(outputs)),
        "overlap": compute_overlap_gram(outputs),
    }


def list_alignments(study: Study, grams: dict[str, np.ndarray]) -> list[Row]:
    """Lists alignments over OOD points, with deltas and with bumps."""
    columns = {
        "factorized": "alignment_factorized",
        "conjunctive": "alignment_conjunctive",
        "factorized (smooth)": "alignment_factorized_smooth",
        "conjunctive (smooth)": "alignment_radial",
    }
    found = {name: study.align(gram) for name, gram in grams.items()}
    return [
        {
            "run": study.name,
            "similarity": name,
            **{column: numbers.get(key) for column, key in columns.items()},
        }
        for name, numbers in found.items()
    ]


def make_matrices(study: Study, grams: dict[str, np.ndarray]) -> Exhibit:
    """Shows Gram matrices beside the ideal ones, ID first, then OOD."""
    is_ood, grid = study.splits.is_ood, study.splits.grid
    order = np.argsort(is_ood, kind="stable")
    matrices = {
        **grams,
        "binary factorized": make_factorized_kernel(grid),
        "conjunctive": make_conjunctive_kernel(grid),
    }
    figure = draw_gram_matrices(
        {name: gram[np.ix_(order, order)] for name, gram in matrices.items()},
        num_id=int((~is_ood).sum()),
        title=study.name,
    )
    return show_run(
        study,
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
            for row in average_pairs(study, gram)
        ],
    )


def average_pairs(study: Study, gram: np.ndarray) -> list[Row]:
    """Averages over different points, by split and by shared factors."""
    grid, is_ood = study.splits.grid, study.splits.is_ood
    shared = (grid[:, None] == grid[None]).sum(axis=2)  # [n, n]
    pairs = is_ood[:, None].astype(int) + is_ood[None]
    rows = []
    for split, kind in enumerate(("ID-ID", "ID-OOD", "OOD-OOD")):
        for count in range(grid.shape[1]):
            chosen = (pairs == split) & (shared == count)
            mean = float(gram[chosen].mean()) if chosen.any() else None
            rows.append({"points": kind, "shared factors": count, "mean": mean})
    return rows


def make_terms(study: Study, grams: dict[str, np.ndarray]) -> Exhibit:
    """Draws how many product terms each kernel needs, and lists its orders."""
    grid, figure = study.splits.grid, None
    rows = [
        {"run": study.name, "similarity": name, **summarize_anova(gram, grid)}
        for name, gram in grams.items()
    ]
    if study.is_plane:
        shares = {
            name: compute_explained_fraction(compute_schmidt_values(gram, grid))
            for name, gram in grams.items()
        }
        terms = np.arange(1, min(SHOWN_TERMS, len(shares["cosine"])) + 1)
        figure = draw_curves(
            terms,
            {name: share[: len(terms)] for name, share in shares.items()},
            xlabel="number of product terms",
            ylabel="explained fraction",
        )
        for row, gram in zip(rows, grams.values(), strict=True):
            row |= summarize_schmidt(gram, grid)
    return show_run(
        study,
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


def list_regressions(study: Study) -> list[Row]:
    """Lists kernel regressions from ID outputs, and from the truth at ID."""
    return [
        {
            "run": study.name,
            "target": target,
            "kernel": name,
            "scales": " ".join(f"{scale:g}" for scale in fit.scales),
            "ridge": fit.ridge,
            "r2_id": fit.r2_id,
            "r2_ood": fit.r2_ood,
        }
        for target, fits in study.kernel_fits.items()
        for name, fit in fits.items()
    ]
