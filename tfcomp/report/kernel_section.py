"""Superposition in outputs (section 3.3), and kernels (equations 1-4)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.metrics import kernels, schmidt, superposition
from tfcomp.metrics.features import mean_or_none
from tfcomp.metrics.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.metrics.scores import count_own_peaks
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import CLOSE, Row, show_run, tell_runs

Grams = dict[str, np.ndarray]
# Columns of the table, and what they show.
ALIGNMENTS = {
    "factorized": "alignment_factorized",
    "conjunctive": "alignment_conjunctive",
    "factorized (smooth)": "alignment_factorized_smooth",
    "conjunctive (smooth)": "alignment_radial",
}
UNTRAINED = "before training"  # among rows of superposition scores
# Share of the way from the R² of the true images to 1, from which outputs are
# called superpositions, mostly or in part.
MOSTLY = 0.5
PARTLY = 0.1
MAX_TERMS = 30  # of a kernel, in the picture


def make_superposition(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether OOD outputs are sums of training outputs."""
    rows = []
    for analysis in analyses:
        if analysis.dataset.is_pixels and analysis.has_hole:
            rows += list_scores(analysis)
    table = make_exhibit(
        "superposition",
        rows=rows,
        memories=superposition.MAX_MEMORIES,
        far=superposition.FAR,
    )
    return make_section(
        "superposition",
        [table],
        describe_superposition(rows),
        points=superposition.MAX_POINTS,
    )


def list_scores(analysis: RunAnalysis) -> list[Row]:
    """Returns superposition scores of outputs, true images, and the start."""
    sources = {
        "model": (analysis.superposition, analysis.bright_outputs),
        "truth": (analysis.composed, analysis.bright_truth),
    }
    before = analysis.untrained
    if before:
        sources[UNTRAINED] = (before.superposition, before.bright_outputs)

    is_ood = analysis.splits.is_ood
    rows: list[Row] = []
    for name, (scores, outputs) in sources.items():
        inputs_r2 = np.full(int(is_ood.sum()), np.nan)
        if name != UNTRAINED and analysis.superposed_inputs is not None:
            inputs_r2 = superposition.score_combinations(
                outputs[is_ood],
                analysis.superposed_inputs,
                analysis.bright_outputs[analysis.splits.is_id],
            )
        has_peaks = _find_several_peaks(analysis, outputs[is_ood])
        for points, distance in (("all", 0.0), ("far", superposition.FAR)):
            is_chosen = scores.distance >= distance
            if not is_chosen.any():
                continue
            summary = superposition.summarize_superposition(scores, distance)
            is_known = is_chosen & np.isfinite(inputs_r2)
            row: Row = {
                "run": analysis.name,
                "OOD outputs": name,
                "points": points,
            }
            for predictor in superposition.PREDICTORS:
                row[predictor] = summary[f"{predictor}_r2"]
            row["superposed_inputs"] = mean_or_none(inputs_r2[is_known])
            row["multiple_peaks"] = mean_or_none(has_peaks[is_chosen])
            row["blank_fraction"] = summary["blank_fraction"]
            rows.append(row)
    return rows


def _find_several_peaks(
    analysis: RunAnalysis, outputs: np.ndarray
) -> np.ndarray:
    """Returns 1 for outputs [n, P] with two peaks or more; NaN if unknown."""
    if not analysis.dataset.has_position:
        return np.full(len(outputs), np.nan)
    images = outputs.reshape(-1, *analysis.dataset.image_shape)
    counts = count_own_peaks(images, "bright")
    return np.where(np.isfinite(counts), counts > 1, np.nan)


@tell_runs
def describe_superposition(rows: Sequence[Row]) -> str:
    """Describes if outputs are sums of memories, at far points if known."""
    for points in ("far", "all"):
        r2 = {
            row["OOD outputs"]: row["superposition"]
            for row in rows
            if row["points"] == points
        }
        model = r2.get("model")
        truth = r2.get("truth")
        if model is not None and truth is not None:
            break
    else:
        return "no held-out output is bright enough to be scored"

    before = r2.get(UNTRAINED)
    numbers = f"R² {model:.2f}; truth {truth:.2f}"
    if before is not None:
        numbers += f"; before training {before:.2f}"
    share = (model - truth) / max(1 - truth, 1e-9)
    if not share >= PARTLY:
        return (
            "held-out outputs are no more superpositions than the true images "
            f"are ({numbers})"
        )
    part = "mostly" if share >= MOSTLY else "in part"
    text = (
        f"held-out outputs can {part} be written as sums of training outputs "
        f"that share a factor value ({numbers})"
    )
    # Before training, R² can be as high (claim C4).
    if before is None or before > model - CLOSE:
        text += "; this alone shows no memorization"
    return text


def make_kernels(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits = []
    alignments: list[Row] = []
    regressions: list[Row] = []
    for analysis in analyses:
        # Of all pairs of points, so a sample is subsampled.
        analysis = analysis.for_pairs
        if not (analysis.dataset.is_pixels and analysis.has_hole):
            continue
        grams = compute_grams(analysis.bright_outputs)
        exhibits.append(make_matrices(analysis, grams))
        truth = kernels.compute_cosine_gram(analysis.bright_truth)
        grams["truth, cosine"] = truth
        alignments += _list_alignments(analysis, grams)
        regressions += _list_regressions(analysis)
        if analysis.splits.is_complete:
            exhibits.append(_make_terms(analysis, grams))
    tables = [
        make_exhibit("kernel_alignment", rows=alignments),
        make_exhibit("kernel_regression", rows=regressions),
    ]
    return make_section(
        "kernels",
        tables + exhibits,
        describe_kernels(alignments),
        points=FEW_POINTS,
    )


def _list_alignments(analysis: RunAnalysis, grams: Grams) -> list[Row]:
    rows = []
    for name, gram in grams.items():
        scores = analysis.align(gram)
        row: Row = {"run": analysis.name, "similarity": name}
        for column, score in ALIGNMENTS.items():
            row[column] = scores.get(score)
        rows.append(row)
    return rows


def _list_regressions(analysis: RunAnalysis) -> list[Row]:
    rows: list[Row] = []
    if not analysis.is_plane:
        return rows
    for target, fits in analysis.kernel_fits.items():
        for kernel, fit in fits.items():
            row = {"run": analysis.name, "target": target, "kernel": kernel}
            row |= vars(fit)
            row["scales"] = " ".join(f"{scale:g}" for scale in fit.scales)
            rows.append(row)
    return rows


@tell_runs
def describe_kernels(rows: Sequence[Row]) -> str:
    """Describes which of the two ideal kernels the outputs resemble."""
    row = next((r for r in rows if r["similarity"] == "cosine"), {})
    factorized = row.get("factorized")
    conjunctive = row.get("conjunctive")
    if factorized is None or conjunctive is None:
        return ""
    if max(factorized, conjunctive) < CLOSE:
        which = "neither ideal kernel"
    elif abs(factorized - conjunctive) < CLOSE:
        which = "both ideal kernels alike"
    elif factorized > conjunctive:
        which = "the factorized kernel more"
    else:
        which = "the conjunctive kernel more"
    return (
        f"the outputs resemble {which} (alignment {factorized:.2f} factorized, "
        f"{conjunctive:.2f} conjunctive)"
    )


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
    is_ood = analysis.splits.is_ood
    order = np.argsort(is_ood, kind="stable")
    matrices = {
        **grams,
        "binary factorized": kernels.make_factorized_kernel(analysis.index),
        "conjunctive": kernels.make_conjunctive_kernel(analysis.index),
    }
    figure = draw_gram_matrices(
        {name: gram[np.ix_(order, order)] for name, gram in matrices.items()},
        num_id=int((~is_ood).sum()),
        title=analysis.name,
    )
    rows = _average_pairs(analysis, matrices)
    return show_run(analysis, "gram", figure, rows)


def _average_pairs(
    analysis: RunAnalysis, matrices: Mapping[str, np.ndarray]
) -> list[Row]:
    """Averages matrices over pairs of points that share k factors."""
    index = analysis.index
    is_ood = analysis.splits.is_ood.astype(int)
    num_shared = (index[:, None] == index[None]).sum(axis=2)  # [n, n]
    num_ood = is_ood[:, None] + is_ood[None]
    rows = []
    for name, matrix in matrices.items():
        for count, points in enumerate(("ID-ID", "ID-OOD", "OOD-OOD")):
            for shared in range(index.shape[1]):
                is_pair = (num_ood == count) & (num_shared == shared)
                rows.append(
                    {
                        "similarity": name,
                        "points": points,
                        "shared factors": shared,
                        "mean": mean_or_none(matrix[is_pair]),
                    }
                )
    return rows


def _make_terms(analysis: RunAnalysis, grams: Grams) -> Exhibit:
    """Shows the variance of kernels by their terms (appendix A.5)."""
    index = analysis.index
    rows = []
    shares = {}
    for name, gram in grams.items():
        row = {"run": analysis.name, "similarity": name}
        row |= schmidt.summarize_anova(gram, index)
        if analysis.is_plane:
            row |= schmidt.summarize_schmidt(gram, index)
            values = schmidt.compute_schmidt_values(gram, index)
            explained = schmidt.compute_explained_fraction(values)
            shares[name] = explained[:MAX_TERMS]
        rows.append(row)

    figure = None
    if shares:
        table = pd.DataFrame(shares)
        figure = draw_curves(
            table.set_axis(table.index + 1),
            xlabel="number of product terms",
            ylabel="explained fraction",
        )
    return show_run(analysis, "schmidt", figure, rows)
