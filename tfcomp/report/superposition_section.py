"""Superposition of training outputs in held-out ones (section 3.3)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis import superposition
from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.analysis.superposition import FAR
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_superposition
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row


def make_superposition(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether OOD outputs are sums of training outputs."""
    rows = [r for s in analyses if s.has_hole for r in list_scores(s)]
    table = Exhibit(
        "superposition",
        "Scores",
        "R² of OOD outputs on predictors made from the model's ID outputs, "
        "averaged over OOD points. superposition: for each factor, the mean "
        "ID output with the same value (the explorer maps it). "
        "superposition_span: all ID outputs that share a value (at most "
        f"{superposition.MAX_MEMORIES}), with nonnegative weights. "
        "conjunctive predictors: as many outputs at the nearest ID points. "
        "superposed_inputs: the model's outputs for the mean codes of ID "
        "points that share a value. multiple_peaks: the share of outputs with "
        "two peaks or more. Rows of the truth have true images in place of OOD "
        f"outputs; far points are at least {FAR:g} grid steps from ID.",
        rows=rows,
    )
    return Section(
        "superposition",
        "Superposition",
        "Is the output at a held-out combination a sum of training outputs "
        "that each share one factor value with it, such as its x or its y? "
        "The background is subtracted (without one, the mean training image). "
        "R² is 1 - SSE/SST about zero, so it does not depend on the contrast "
        "of an output. A model that composes scores near 0, as the true "
        "images. With three factors or more, "
        f"{superposition.MAX_POINTS} held-out points are scored.",
        [table] if rows else [],
        describe_superposition(rows),
    )


def list_scores(analysis: RunAnalysis) -> list[Row]:
    """Returns the scores of a run, and of the true images."""
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
