"""Superposition in outputs (section 3.3), and kernels (equations 1-4)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.metrics import kernels, schmidt, superposition
from tfcomp.metrics.features import mean_or_none
from tfcomp.metrics.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.metrics.scores import count_own_peaks
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import UNTRAINED, Row

Grams = dict[str, np.ndarray]
# Columns of the table, and what they show.
ALIGNMENTS = {
    "factorized": "alignment_factorized",
    "conjunctive": "alignment_conjunctive",
    "factorized (smooth)": "alignment_factorized_smooth",
    "conjunctive (smooth)": "alignment_radial",
}


def make_superposition(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether OOD outputs are sums of training outputs."""
    rows = [row for analysis in analyses for row in list_scores(analysis)]
    memories, far = superposition.MAX_MEMORIES, superposition.FAR
    table = make_exhibit("superposition", rows=rows, memories=memories, far=far)
    said = run_exhibits.describe_superposition(rows)
    points = superposition.MAX_POINTS
    return make_section("superposition", [table], said, points=points)


def list_scores(analysis: RunAnalysis) -> list[Row]:
    """Returns superposition scores of outputs, true images, and the start."""
    known = analysis.bright_outputs[analysis.splits.is_id]
    is_ood = analysis.splits.is_ood
    rows = []
    parts = {
        "model": (analysis.superposition, analysis.bright_outputs),
        "truth": (analysis.composed, analysis.bright_truth),
    }
    if before := analysis.untrained:
        parts[UNTRAINED] = before.superposition, before.bright_outputs
    for name, (scores, outputs) in parts.items():
        unseen = outputs[is_ood]
        inputs = is_multiple = np.full(len(unseen), np.nan)
        if name != UNTRAINED and analysis.superposed_inputs is not None:
            pair = unseen, analysis.superposed_inputs
            inputs = superposition.score_combinations(*pair, known)
        if analysis.dataset.has_position:
            images = unseen.reshape(-1, *analysis.dataset.image_shape)
            counts = count_own_peaks(images, "bright")
            is_multiple = np.where(np.isfinite(counts), counts > 1, np.nan)
        for points, distance in (("all", 0.0), ("far", superposition.FAR)):
            chosen = scores.distance >= distance
            if not chosen.any():
                continue
            summary = superposition.summarize_superposition(scores, distance)
            r2 = {key: summary[f"{key}_r2"] for key in superposition.PREDICTORS}
            finite = inputs[chosen & np.isfinite(inputs)]
            rows.append(
                {
                    "run": analysis.name,
                    "OOD outputs": name,
                    "points": points,
                    **r2,
                    "superposed_inputs": mean_or_none(finite),
                    "multiple_peaks": mean_or_none(is_multiple[chosen]),
                    "blank_fraction": summary["blank_fraction"],
                }
            )
    return rows


def make_kernels(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits, alignment, regression = [], [], []
    # Of all pairs of points, so a sample is subsampled.
    for analysis in [analysis.for_pairs for analysis in analyses]:
        grams = compute_grams(analysis.bright_outputs)
        exhibits.append(make_matrices(analysis, grams))
        grams["truth, cosine"] = kernels.compute_cosine_gram(
            analysis.bright_truth
        )
        for name, gram in grams.items():
            scores = analysis.align(gram)
            row = {c: scores.get(key) for c, key in ALIGNMENTS.items()}
            alignment.append({"run": analysis.name, "similarity": name} | row)
        if analysis.is_plane:
            regression += [
                {
                    "run": analysis.name,
                    "target": target,
                    "kernel": name,
                    **vars(fit),
                    "scales": " ".join(f"{scale:g}" for scale in fit.scales),
                }
                for target, fits in analysis.kernel_fits.items()
                for name, fit in fits.items()
            ]
        if analysis.splits.is_complete:
            exhibits.append(_make_terms(analysis, grams))
    exhibits[:0] = [
        make_exhibit("kernel_alignment", rows=alignment),
        make_exhibit("kernel_regression", rows=regression),
    ]
    said = run_exhibits.describe_kernels(alignment)
    return make_section("kernels", exhibits, said, points=FEW_POINTS)


def compute_grams(outputs: np.ndarray) -> Grams:
    """Computes three similarities of all outputs, [n, n] each."""
    distances = kernels.compute_distance_gram(outputs)
    largest = np.fmax.reduce(distances, axis=None, initial=0)
    return {
        "cosine": kernels.compute_cosine_gram(outputs),
        "L2": 1 - distances / (largest if largest > 0 else 1),
        "overlap": kernels.compute_overlap_gram(outputs),
    }


def make_matrices(analysis: RunAnalysis, grams: Grams) -> Exhibit:
    """Shows Gram matrices beside the ideal ones, ID first, then OOD."""
    is_ood, index = analysis.splits.is_ood, analysis.index
    order = np.argsort(is_ood, kind="stable")
    matrices = {
        **grams,
        "binary factorized": kernels.make_factorized_kernel(index),
        "conjunctive": kernels.make_conjunctive_kernel(index),
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
    index, is_ood = analysis.index, analysis.splits.is_ood
    shared = (index[:, None] == index[None]).sum(axis=2)  # [n, n]
    pairs = is_ood[:, None].astype(int) + is_ood[None]
    rows = []
    for split, kind in enumerate(("ID-ID", "ID-OOD", "OOD-OOD")):
        for count in range(index.shape[1]):
            mean = mean_or_none(gram[(pairs == split) & (shared == count)])
            rows.append({"points": kind, "shared factors": count, "mean": mean})
    return rows


def _make_terms(analysis: RunAnalysis, grams: Grams) -> Exhibit:
    index, figure = analysis.index, None
    rows = {
        name: {
            "run": analysis.name,
            "similarity": name,
            **schmidt.summarize_anova(gram, index),
        }
        for name, gram in grams.items()
    }
    if analysis.is_plane:
        shares = {}
        for name, gram in grams.items():
            rows[name] |= schmidt.summarize_schmidt(gram, index)
            values = schmidt.compute_schmidt_values(gram, index)
            shares[name] = schmidt.compute_explained_fraction(values)[:30]
        table = pd.DataFrame(shares)
        figure = draw_curves(
            table.set_axis(table.index + 1),
            xlabel="number of product terms",
            ylabel="explained fraction",
        )
    return run_exhibits.show_run(analysis, "schmidt", figure, [*rows.values()])
