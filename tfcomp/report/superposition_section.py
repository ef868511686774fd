"""Superposition of memorized outputs (section 3.3, figure 1d)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.scores import count_finite_peaks
from tfcomp.analysis.superposition import (
    FAR,
    MAX_MEMORIES,
    MAX_POINTS,
    PREDICTORS,
    score_combinations,
    summarize_superposition,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_superposition
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row


def make_superposition(studies: Sequence[Study]) -> Section:
    """Shows whether OOD outputs are sums of what was memorized."""
    chosen = [study for study in studies if study.has_hole]
    exhibits = [make_table(chosen)] if chosen else []
    return Section(
        "superposition",
        "Superposition",
        "Is an output at a held-out position the sum of memorized outputs "
        "that share one of its factors each, as its x and its y? Images are "
        "made bright (background 0; without a background, the mean training "
        "image is taken off). R² is 1 - SSE/SST about zero, so it does not "
        "depend on how faint an output is. A true composer scores near 0. Of "
        f"three factors and more, {MAX_POINTS} held-out points are scored.",
        exhibits,
        describe_superposition(exhibits[0].rows) if exhibits else "",
    )


def make_table(studies: Sequence[Study]) -> Exhibit:
    """Lists R² of every predictor."""
    return Exhibit(
        "superposition",
        "Scores",
        "R² of OOD outputs on predictors made from the model's own ID "
        "outputs, averaged over OOD points. superposition combines the mean "
        "outputs sharing each of the factors (the explorer maps it); "
        f"superposition_span all outputs sharing one (at most {MAX_MEMORIES}), "
        "with nonnegative weights; the conjunctive predictors as many outputs "
        "of the nearest ID points; superposed_inputs what the model draws for "
        "the mean codes of the ID points sharing each factor. multiple_peaks: "
        "the share of outputs with two peaks or more. Rows of the truth have "
        "true images in place of OOD outputs; far points are at least "
        f"{FAR:g} grid steps from ID.",
        rows=[row for study in studies for row in list_scores(study)],
    )


def list_scores(study: Study) -> list[Row]:
    """Lists the scores of a run and, for comparison, of a true composer."""
    truth = study.bright_outputs.copy()
    is_ood = study.splits.is_ood
    truth[is_ood] = study.bright_truth[is_ood]
    compared = {
        "model": (study.superposition, study.bright_outputs),
        "truth": (study.composed, truth),
    }
    rows = []
    for name, (scores, outputs) in compared.items():
        inputs = score_inputs(study, outputs)
        is_multiple = find_multiple(study, outputs)
        for points, distance in (("all", 0.0), ("far", FAR)):
            chosen = scores.distance >= distance
            if not chosen.any():
                continue
            summary = summarize_superposition(scores, distance)
            rows.append(
                {
                    "run": study.name,
                    "OOD outputs": name,
                    "points": points,
                    **{key: summary[f"{key}_r2"] for key in PREDICTORS},
                    "superposed_inputs": mean_or_none(
                        inputs[chosen & np.isfinite(inputs)]
                    ),
                    "multiple_peaks": mean_or_none(is_multiple[chosen]),
                    "blank_fraction": summary["blank_fraction"],
                }
            )
    return rows


def score_inputs(study: Study, outputs: np.ndarray) -> np.ndarray:
    """R² of OOD outputs on images of superposed inputs, [n_ood] or NaN."""
    unseen = outputs[study.splits.is_ood]
    if study.superposed_inputs is None:
        return np.full(len(unseen), np.nan)
    known = outputs[study.splits.is_id]
    return score_combinations(unseen, study.superposed_inputs, known)


def find_multiple(study: Study, outputs: np.ndarray) -> np.ndarray:
    """Which OOD outputs have several peaks, [n_ood]; NaN without positions."""
    unseen = outputs[study.splits.is_ood]
    if not study.dataset.has_position:
        return np.full(len(unseen), np.nan)
    images = unseen.reshape(-1, *study.dataset.image_shape)
    counts = count_finite_peaks(images, "bright")
    return np.where(np.isfinite(counts), counts > 1, np.nan)
