"""Outputs across a gap of one factor (figure 9), and between positions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcomp.datasets.grid_maps import Curve
from tfcomp.figures import pictures
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.metrics import interpolation
from tfcomp.metrics.interpolation import Interpolation
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.metrics.scores import measure_ssim
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import CLOSE, Row
from tfcomp.report.run_section import make_landscapes

Gap = tuple[RunAnalysis, Curve, Interpolation]

R2_NAMES = {
    "interpolation_r2": "output on the edges, best weights",
    "linear_r2": "output, linear weights",
    "truth_r2": "true image on the edges",
}
JUMP_PANELS = {
    "steps, median": "speed_ratio",
    "longest step": "max_speed_ratio",
    "turning, median": "turning_ratio",
    "sharpest turn": "max_turning_ratio",
}


def make_gaps(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the outputs across a held-out range of one factor."""
    exhibits = [
        run_exhibits.show_run(
            analysis,
            "error_curve",
            pictures.picture_error_curve(analysis.dataset, analysis.evaluation),
            run_exhibits.list_points(analysis, {"mse": analysis.error}),
            factor=analysis.curves[0].factor.name,
        )
        for analysis in analyses
    ]
    gaps = list_scored_gaps(analyses)
    rows = [summarize_curve(*gap) for gap in gaps]
    for gap in gaps:
        exhibits += [make_images(*gap), _make_weights(*gap)]
    if gaps:
        jumps = [
            {"run": run.name, "curve": curve.label, "stage": stage} | numbers
            for run, curve, _ in gaps
            for stage, numbers in run.compare_gap(curve).items()
        ]
        unit = "inside the gap / outside"
        figure = run_exhibits.draw_stage_rows(jumps, JUMP_PANELS, unit)
        table = make_exhibit("interpolation", rows=rows)
        last = make_exhibit("gap_statistics", figure, jumps)
        exhibits = [table, *exhibits, last]
    return make_section("gaps", exhibits, describe_gaps(rows))


def list_scored_gaps(analyses: Sequence[RunAnalysis]) -> list[Gap]:
    """Returns the curves with a held-out range, and their scores."""
    return [
        (analysis, curve, analysis.score_gap(curve))
        for analysis in analyses
        for curve in analysis.gaps
    ]


def make_images(
    analysis: RunAnalysis, curve: Curve, scores: Interpolation
) -> Exhibit:
    """Shows truth, output and interpolation in a gap (figures 9c, 9d)."""
    is_ood = analysis.splits.is_ood[curve.rows]
    truth = analysis.evaluation.truth[curve.rows]
    cycle = curve.factor.cycle
    linear = interpolation.interpolate_edges(truth, is_ood, cycle)
    last = len(scores.rows) - 1
    spread = np.linspace(0, last, min(9, last + 1)).round().astype(int)
    before, after = scores.edges[0][0], scores.edges[-1][1]
    shown = np.array([before, *scores.rows[spread], after])
    rows = curve.rows[shown]
    images = {
        analysis.dataset.truth_label: truth[shown],
        "output": analysis.evaluation.images[rows],
    }
    name, suffix = _name_curve(analysis, curve)
    figure = draw_rows(
        images | {"edges, linear": linear[shown]},
        title=name,
        first_row=analysis.dataset.first_row,
        column_titles=pictures.describe_points(analysis.dataset, rows),
    )
    return run_exhibits.show_run(
        analysis, "gap_images", figure, suffix=suffix, run=name
    )


def _make_weights(
    analysis: RunAnalysis, curve: Curve, scores: Interpolation
) -> Exhibit:
    values = curve.factor.values()[scores.rows]
    columns = {
        curve.factor.name: values,
        "fraction": scores.fraction,
        "weight_before": scores.weights[:, 0],
        "weight_after": scores.weights[:, 1],
        "interpolation_r2": scores.r2,
        "linear_r2": scores.linear_r2,
        "truth_r2": scores.truth_r2,
    }
    # A gap of a periodic factor may contain its wrap.
    is_wrapped = np.any(np.diff(values) < 0)
    table = pd.DataFrame({R2_NAMES[key]: columns[key] for key in R2_NAMES})
    name, suffix = _name_curve(analysis, curve)
    figure = draw_curves(
        table if is_wrapped else table.set_axis(values),
        xlabel=curve.factor.label,
        ylabel="R² in pixel space",
        title=name,
    )
    rows = run_exhibits.to_rows(columns)
    return run_exhibits.show_run(
        analysis, "gap_weights", figure, rows, suffix=suffix, run=name
    )


def summarize_curve(
    analysis: RunAnalysis, curve: Curve, scores: Interpolation
) -> Row:
    """Summarizes the scores of a curve with a gap for the table."""
    factor, edges = curve.factor, np.unique(scores.edges, axis=0)
    widths = np.diff(factor.values()[edges])
    widths[widths <= 0] += factor.high - factor.low  # across the period's end
    return {
        "run": analysis.name,
        "curve": curve.label,
        "gap_width": float(widths.sum()),
        **interpolation.summarize_interpolation(scores),
        "ood_mse": float(analysis.error[curve.rows[scores.rows]].mean()),
    }


def _name_curve(analysis: RunAnalysis, curve: Curve) -> tuple[str, str]:
    """Returns run and curve for a heading, and an end for names of files."""
    labels = [other.label for other in analysis.curves]
    if len(labels) == 1:
        return analysis.name, ""
    # Names of levels may have characters that no file name can have.
    return f"{analysis.name}, {curve.label}", f"_{labels.index(curve.label)}"


@run_exhibits.tell_runs
def describe_gaps(rows: Sequence[Row]) -> str:
    """Describes if outputs in a gap are interpolations of its edges."""
    pairs = [(row["interpolation_r2"], row["truth_r2"]) for row in rows]
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return ""
    output, truth = (sum(v) / len(v) for v in zip(*pairs, strict=True))
    how, than = "as much", "as"
    if output > truth + CLOSE:
        how, than = "more", "than"
    elif output < truth - CLOSE:
        how, than = "less", "than"
    return (
        f"outputs in the gap are {how} a linear combination of the edge images "
        f"{than} the true images are (R² {output:.2f}; truth {truth:.2f})"
    )


def make_between(analyses: Sequence[RunAnalysis], count: int) -> Section:
    """Shows errors at `count` values of each factor, between positions, too."""
    finer = [analysis.refine(count) for analysis in analyses]
    rows = [
        {
            "run": analysis.name,
            "subset": f"{name}_between",
            "points": int(chosen.sum()),
            **analysis.evaluation.scores[name],
            "ssim_error": measure_ssim(analysis).get(f"ssim_error_{name}"),
        }
        for analysis in finer
        for name, chosen in analysis.subsets.items()
    ]
    table = make_exhibit("between_scores", rows=rows)
    exhibits = [*make_landscapes(finer, "between"), table]
    return make_section("between", exhibits, count=count)
