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

MAX_IMAGES = 9  # in a gap
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
    analyses = [a for a in analyses if a.dataset.is_pixels and a.curves]
    gaps = list_scored_gaps(analyses)
    summaries = [summarize_curve(*gap) for gap in gaps]
    exhibits = [make_exhibit("interpolation", rows=summaries)]
    exhibits += [_make_error_curve(analysis) for analysis in analyses]
    for gap in gaps:
        exhibits += [make_images(*gap), _make_weights(*gap)]

    jumps = []
    for analysis, curve, _ in gaps:
        for stage, ratios in analysis.compare_gap(curve).items():
            place = {"run": analysis.name, "curve": curve.label, "stage": stage}
            jumps.append(place | ratios)
    figure = run_exhibits.draw_stage_rows(
        jumps, JUMP_PANELS, "inside the gap / outside"
    )
    exhibits.append(make_exhibit("gap_statistics", figure, jumps))
    return make_section("gaps", exhibits, describe_gaps(summaries))


def _make_error_curve(analysis: RunAnalysis) -> Exhibit:
    return run_exhibits.show_run(
        analysis,
        "error_curve",
        pictures.picture_error_curve(analysis.dataset, analysis.evaluation),
        run_exhibits.list_points(analysis, {"mse": analysis.error}),
        factor=analysis.curves[0].factor.name,
    )


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
    truth = analysis.evaluation.truth[curve.rows]
    is_ood = analysis.splits.is_ood[curve.rows]
    linear = interpolation.interpolate_edges(truth, is_ood, curve.factor.cycle)

    count = min(MAX_IMAGES, len(scores.rows))
    spread = np.linspace(0, len(scores.rows) - 1, count).round().astype(int)
    before = scores.edges[0][0]
    after = scores.edges[-1][1]
    places = np.array([before, *scores.rows[spread], after])  # on the curve
    points = curve.rows[places]
    name, suffix = _name_curve(analysis, curve)
    figure = draw_rows(
        {
            analysis.dataset.truth_label: truth[places],
            "output": analysis.evaluation.images[points],
            "edges, linear": linear[places],
        },
        title=name,
        first_row=analysis.dataset.first_row,
        column_titles=pictures.describe_points(analysis.dataset, points),
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
    table = pd.DataFrame(columns)[list(R2_NAMES)].rename(columns=R2_NAMES)
    # The gap of a periodic factor may contain its wrap.
    is_rising = bool((np.diff(values) >= 0).all())
    name, suffix = _name_curve(analysis, curve)
    figure = draw_curves(
        table.set_axis(values) if is_rising else table,
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
    factor = curve.factor
    edges = np.unique(scores.edges, axis=0)
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
    columns = ["interpolation_r2", "truth_r2"]
    scores = pd.DataFrame(rows)[columns].astype(float).dropna()
    if scores.empty:
        return ""
    output, truth = scores.mean()
    if output > truth + CLOSE:
        comparison = "more a linear combination of the edge images than"
    elif output < truth - CLOSE:
        comparison = "less a linear combination of the edge images than"
    else:
        comparison = "as much a linear combination of the edge images as"
    return (
        f"outputs in the gap are {comparison} the true images are "
        f"(R² {output:.2f}; truth {truth:.2f})"
    )


def make_between(analyses: Sequence[RunAnalysis], count: int) -> Section:
    """Shows errors at `count` values of each factor, between positions, too."""
    finer = [analysis.refine(count) for analysis in analyses]
    rows = []
    for analysis in finer:
        ssim = measure_ssim(analysis)
        for name, is_in_subset in analysis.subsets.items():
            row = {
                "run": analysis.name,
                "subset": f"{name}_between",
                "points": int(is_in_subset.sum()),
                **analysis.evaluation.scores[name],
                "ssim_error": ssim.get(f"ssim_error_{name}"),
            }
            rows.append(row)
    table = make_exhibit("between_scores", rows=rows)
    exhibits = [*make_landscapes(finer, "between"), table]
    return make_section("between", exhibits, count=count)
