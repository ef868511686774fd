"""The kernel that a model has learned (figures 1e, 8; equations 1-4, 33)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.gram import compute_distance_gram
from tfcomp.analysis.gram import compute_overlap_gram
from tfcomp.analysis.gram import convert_to_similarity
from tfcomp.analysis.kernel_regression import fit_kernels
from tfcomp.analysis.kernels import make_conjunctive_kernel
from tfcomp.analysis.kernels import make_factorized_kernel
from tfcomp.analysis.schmidt import compute_explained_fraction
from tfcomp.analysis.schmidt import compute_schmidt_values
from tfcomp.analysis.schmidt import summarize_schmidt
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_curves
from tfcomp.figures import draw_gram_matrices
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section

SHOWN_TERMS = 30


def make_kernels(studies: Sequence[Study]) -> Section:
    """Which ideal kernel the outputs of a run resemble."""
    chosen = [s for s in studies if s.has_hole]
    exhibits: list[Exhibit] = []
    alignment: list[dict[str, Any]] = []
    regression: list[dict[str, Any]] = []
    for study in chosen:
        grams = compute_grams(study.bright_outputs)
        truth = {"truth, cosine": compute_cosine_gram(study.bright_truth)}
        for name, gram in {**grams, **truth}.items():
            alignment.append(make_alignment_row(study, name, gram))
        regression += make_regression_rows(study)
        exhibits.append(make_matrices(study, grams))
        exhibits.append(make_schmidt(study, {**grams, **truth}))
    if chosen:
        exhibits = [
            make_alignment(alignment),
            make_regression(regression),
            *exhibits,
        ]
    return Section(
        "kernels",
        "Kernels",
        "Similarity of the outputs at any two grid points. A model that "
        "treats x and y apart has the binary factorized kernel (half the "
        "similarity for sharing x, half for sharing y); one that memorizes "
        "combinations the conjunctive one. Images are bright.",
        exhibits,
    )


def compute_grams(outputs: np.ndarray) -> dict[str, np.ndarray]:
    """Three similarities of all outputs, [n, n] each."""
    distances = compute_distance_gram(outputs)
    return {
        "cosine": compute_cosine_gram(outputs),
        "L2": convert_to_similarity(distances),
        "overlap": compute_overlap_gram(outputs),
    }


def make_alignment_row(
    study: Study, name: str, gram: np.ndarray
) -> dict[str, Any]:
    """Alignment over OOD points, with deltas and with bumps in place."""
    numbers = study.align(gram)
    return {
        "run": study.name,
        "similarity": name,
        "factorized": numbers["alignment_factorized"],
        "conjunctive": numbers["alignment_conjunctive"],
        "factorized (smooth)": numbers["alignment_factorized_smooth"],
        "conjunctive (smooth)": numbers["alignment_radial"],
    }


def make_alignment(rows: list[dict[str, Any]]) -> Exhibit:
    """The table of alignments."""
    return Exhibit(
        "kernel_alignment",
        "Agreement with ideal kernels",
        "Centred kernel alignment over pairs of OOD points. smooth: the "
        "ideal kernels with the overlap of two bumps in place of the "
        "Kronecker delta. The constant kernel scores 0 by definition.",
        rows=rows,
    )


def make_matrices(study: Study, grams: dict[str, np.ndarray]) -> Exhibit:
    """Gram matrices beside the ideal ones, ID first, then OOD."""
    is_ood, grid = study.splits.is_ood, study.splits.grid
    order = np.argsort(is_ood, kind="stable")
    ideal = {
        "binary factorized": make_factorized_kernel(grid),
        "conjunctive": make_conjunctive_kernel(grid),
    }
    figure = draw_gram_matrices(
        {k: g[np.ix_(order, order)] for k, g in {**grams, **ideal}.items()},
        num_id=int((~is_ood).sum()),
        title=study.name,
    )
    return Exhibit(
        f"{study.name}_gram",
        f"Gram matrices: {study.name}",
        "Similarity of outputs at all pairs of grid points, ID points "
        "first, then OOD points (behind the lines), x slowest in each. L2: "
        "1 - distance / largest distance. overlap: intersection over union "
        "of the pixels above half the height of a bump. The table has means "
        "over pairs of different points, by what they share.",
        figure,
        [
            {"similarity": name, **row}
            for name, gram in {**grams, **ideal}.items()
            for row in average_pairs(study, gram)
        ],
    )


def average_pairs(study: Study, gram: np.ndarray) -> list[dict[str, Any]]:
    """Mean similarity of different points, by split and shared factors."""
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


def make_schmidt(study: Study, grams: dict[str, np.ndarray]) -> Exhibit:
    """How many product terms each kernel needs."""
    grid = study.splits.grid
    shares, rows = {}, []
    for name, gram in grams.items():
        values = compute_schmidt_values(gram, grid)
        shares[name] = compute_explained_fraction(values)[:SHOWN_TERMS]
        summary = summarize_schmidt(gram, grid)
        rows.append({"run": study.name, "similarity": name, **summary})
    terms = np.arange(1, len(next(iter(shares.values()))) + 1)
    figure = draw_curves(
        terms,
        shares,
        xlabel="number of product terms",
        ylabel="explained fraction",
        title=study.name,
    )
    return Exhibit(
        f"{study.name}_schmidt",
        f"Schmidt decomposition: {study.name}",
        "Share of the squared norm of the kernel over the whole grid that "
        "the best sum of so many products k(x, x') k(y, y') explains. The "
        "effective rank is the exponential of the entropy of the squared "
        "singular values.",
        figure,
        rows,
    )


def make_regression_rows(study: Study) -> list[dict[str, Any]]:
    """Kernel regression from ID outputs to OOD outputs and to the truth."""
    rows = []
    targets = {
        "model outputs": study.bright_outputs,
        "truth": study.bright_truth,
    }
    for target, images in targets.items():
        fits = fit_kernels(study.splits.grid, images, study.splits.is_ood)
        rows += [
            {
                "run": study.name,
                "target": target,
                "kernel": name,
                "scales": " ".join(f"{scale:g}" for scale in fit.scales),
                "ridge": fit.ridge,
                "r2_id": fit.r2_id,
                "r2_ood": fit.r2_ood,
            }
            for name, fit in fits.items()
        ]
    return rows


def make_regression(rows: list[dict[str, Any]]) -> Exhibit:
    """The table of kernel regressions."""
    return Exhibit(
        "kernel_regression",
        "Kernel regression from ID",
        "Ridge regression of the outputs (or true images) on the factors, "
        "fitted to ID points; length scales (grid steps, per factor) and "
        "ridge are chosen by leave-one-out on ID alone. r2_id: leave one "
        "out; r2_ood: at OOD points. additive: a sum of functions of x and "
        "of y; product: Gaussian in both; radial: Matérn 3/2 of the "
        "distance.",
        rows=rows,
    )
