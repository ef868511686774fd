"""Errors of outputs (figure 1b), and superposition in them (section 3.3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcomp.analysis import superposition
from tfcomp.analysis.features import mean_or_none
from tfcomp.analysis.scores import count_own_peaks
from tfcomp.evaluation import pictures
from tfcomp.evaluation.image_metrics import compute_border, compute_ssim
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report import findings
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row, group_runs, list_points
from tfcomp.report.run_names import to_file_name


def make_errors(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows errors by combination, and by distance to ID."""
    groups = group_runs([analysis for analysis in analyses if analysis.has_map])
    edged = [
        analysis
        for analysis in analyses
        if len(analysis.dataset.space) > 1
        and len(_list_distances(analysis)) > 1
    ]
    border = [{"run": s.name, **compute_border(s)} for s in edged]
    about = " ".join(
        f"{m.name}: {m.about}{f', in {m.unit}' if m.unit else ''}."
        for m in list_metrics("image")
    )
    rows = [
        {"run": analysis.name, "subset": subset, **scores}
        for analysis in analyses
        for subset, scores in analysis.evaluation.scores.items()
    ]
    exhibits = [make_landscapes(group) for group in groups]
    if edged:
        exhibits.append(_make_border(edged, border))
    exhibits.append(make_exhibit("all_scores", rows=rows, scores=about))
    return make_section("errors", exhibits, findings.describe_border(border))


def make_between(analyses: Sequence[RunAnalysis], count: int) -> Section:
    """Shows errors at `count` values of each factor, between positions, too."""
    finer = [analysis.refine(count) for analysis in analyses]
    rows = [
        {
            "run": analysis.name,
            "subset": f"{name}_between",
            "points": int(chosen.sum()),
            **analysis.evaluation.scores[name],
            "ssim_error": compute_ssim(analysis).get(f"ssim_error_{name}"),
        }
        for analysis in finer
        for name, chosen in analysis.subsets.items()
    ]
    maps = group_runs([analysis for analysis in finer if analysis.has_map])
    exhibits = [make_landscapes(group, "between") for group in maps]
    exhibits.append(make_exhibit("between_scores", rows=rows))
    return make_section("between", exhibits, count=count)


def make_landscapes(
    analyses: Sequence[RunAnalysis], kind: str = "landscape"
) -> Exhibit:
    """Maps the errors of runs with the same factors and region."""
    errors = {
        analysis.name: analysis.for_maps.error_ratio for analysis in analyses
    }
    first = analyses[0].for_maps
    suffix = "" if len(analyses) > 1 else f"_{to_file_name(first.name)}"
    return make_exhibit(
        kind,
        pictures.picture_maps(
            first.dataset, errors, pictures.label_error(first.dataset)
        ),
        list_points(first, errors),
        name=f"{kind}{suffix}",
        reference=first.dataset.reference_name,
        planes=pictures.describe_planes(first.dataset),
    )


def _make_border(
    analyses: Sequence[RunAnalysis], border: Sequence[Row]
) -> Exhibit:
    rows = [
        {"run": row["run"], "distance": distance, "relative_mse": error}
        for analysis, row in zip(analyses, border, strict=True)
        for distance, error in zip(
            _list_distances(analysis), row["border_relative_mse"], strict=True
        )
    ]
    table = pd.DataFrame(rows, dtype=object).pivot(
        index="distance", columns="run", values="relative_mse"
    )
    figure = draw_curves(
        table.index.astype(float),
        {row["run"]: table[row["run"]] for row in border},
        xlabel="distance to the nearest ID grid point (grid steps)",
        ylabel=pictures.label_error(analyses[0].dataset),
    )
    reference = analyses[0].dataset.reference_name
    return make_exhibit("border", figure, rows, reference=reference)


def _list_distances(analysis: RunAnalysis) -> list[float]:
    steps = analysis.border_distance
    return np.unique(steps[np.isfinite(steps) & (steps > 0)]).tolist()


def make_superposition(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether OOD outputs are sums of training outputs."""
    rows = [row for s in analyses if s.has_hole for row in list_scores(s)]
    table = make_exhibit(
        "superposition",
        rows=rows,
        memories=superposition.MAX_MEMORIES,
        far=superposition.FAR,
    )
    return make_section(
        "superposition",
        [table],
        findings.describe_superposition(rows),
        points=superposition.MAX_POINTS,
    )


def list_scores(analysis: RunAnalysis) -> list[Row]:
    """Returns superposition scores of a run, and of the true images."""
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
