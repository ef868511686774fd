"""One ordered factor with a gap: error, interpolation, jumps (figure 9)."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis import interpolation
from tfcomp.analysis.interpolation import Interpolation
from tfcomp.datasets.grid_maps import Curve
from tfcomp.evaluation.pictures import describe_points, picture_error_curve
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report import run_exhibits
from tfcomp.report.findings import describe_gaps
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row
from tfcomp.report.run_names import to_file_name

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
            f"Error against {analysis.curves[0].factor.name}",
            "MSE over pixels at every grid point. The held-out range is "
            "shaded.",
            picture_error_curve(analysis.dataset, analysis.evaluation),
            run_exhibits.list_points(analysis, {"mse": analysis.error}),
        )
        for analysis in analyses
        if analysis.curves
    ]
    gaps = list_scored_gaps(analyses)
    rows = [summarize_curve(*gap) for gap in gaps]
    for gap in gaps:
        exhibits += [make_images(*gap), _make_weights(*gap)]
    if gaps:
        exhibits = [_make_table(rows), *exhibits, _make_jumps(gaps)]
    return Section(
        "gaps",
        "Across the gap",
        "These runs have one ordered factor. Inside a held-out range, does "
        "the network draw the true images, or the linear interpolation of the "
        "two images at the edges? R² is 1 - SSE/SST about zero in pixel "
        "space.",
        exhibits,
        describe_gaps(rows),
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
    is_ood = analysis.splits.is_ood[curve.rows]
    truth = analysis.evaluation.truth[curve.rows]
    edged = truth, is_ood, curve.factor.periodic
    linear = interpolation.interpolate_edges(*edged)
    last = len(scores.rows) - 1
    spread = np.linspace(0, last, min(9, last + 1)).round().astype(int)
    before, after = scores.edges[0][0], scores.edges[-1][1]
    shown = np.array([before, *scores.rows[spread], after])
    rows = curve.rows[shown]
    images = {"truth": truth[shown], "output": analysis.evaluation.images[rows]}
    figure = draw_rows(
        images | {"edges, linear": linear[shown]},
        title=_name_curve(analysis, curve),
        first_row=analysis.dataset.first_row,
        column_titles=describe_points(analysis.dataset, rows),
    )
    return _show_curve(
        analysis,
        curve,
        "gap_images",
        "Across the gap",
        "True image, output, and linear interpolation of the true images at "
        "the edges. The edges are the first and the last column and were "
        "trained on. The gray scale reaches from 0 to 1.",
        figure,
    )


def _make_weights(
    analysis: RunAnalysis, curve: Curve, scores: Interpolation
) -> Exhibit:
    values = curve.factor.values()[scores.rows]
    # A gap of a periodic factor may contain its wrap.
    is_wrapped = np.any(np.diff(values) < 0)
    numbers = scores.r2, scores.linear_r2, scores.truth_r2
    figure = draw_curves(
        np.arange(len(values)) if is_wrapped else values,
        dict(zip(R2_NAMES.values(), numbers, strict=True)),
        xlabel=curve.factor.label,
        ylabel="R² in pixel space",
        title=_name_curve(analysis, curve),
    )
    return _show_curve(
        analysis,
        curve,
        "interpolation",
        "Interpolation of the edges",
        "R² of the output on the two true edge images, with the best weights "
        "(which the table lists) and with those of the linear interpolation. "
        "For comparison, R² of the true image: the score of a network that "
        "generalizes.",
        figure,
        run_exhibits.to_rows(
            {
                curve.factor.name: values,
                "fraction": scores.fraction,
                "weight_before": scores.weights[:, 0],
                "weight_after": scores.weights[:, 1],
                **dict(zip(R2_NAMES, numbers, strict=True)),
            }
        ),
    )


def summarize_curve(
    analysis: RunAnalysis, curve: Curve, scores: Interpolation
) -> Row:
    """Summarizes the scores of a curve with a gap for the table."""
    error = analysis.error[curve.rows[scores.rows]]
    steps = len(scores.rows) + len(np.unique(scores.edges, axis=0))
    return {
        "run": analysis.name,
        "curve": curve.label,
        "gap_width": steps * curve.factor.step,
        **interpolation.summarize_interpolation(scores),
        "ood_mse": float(error.mean()),
    }


def _make_table(rows: Sequence[Row]) -> Exhibit:
    rising = sorted(rows, key=lambda row: row["gap_width"])
    widths = np.array([row["gap_width"] for row in rising])
    figure = None
    if len(set(widths.round(3))) > 1:
        labels = R2_NAMES.items()
        figure = draw_curves(
            widths,
            {text: [row[name] for row in rising] for name, text in labels},
            xlabel="distance of the edges (unit of the factor)",
            ylabel="mean R² over the gap",
        )
    return Exhibit(
        "interpolation",
        "Interpolation scores",
        "Means over the held-out points: R² of the outputs on the two edge "
        "images with the best weights (and its least value), with the weights "
        "of the linear interpolation, and R² of the true images. gap_width is "
        "the distance of the edges.",
        figure,
        rows,
    )


def _make_jumps(gaps: Sequence[Gap]) -> Exhibit:
    rows = [
        {"run": analysis.name, "curve": curve.label, "stage": stage} | numbers
        for analysis, curve, _ in gaps
        for stage, numbers in analysis.compare_gap(curve).items()
    ]
    ylabel = "inside the gap / outside"
    return Exhibit(
        "gap_statistics",
        "Jumps of the manifold",
        "Length of the steps between the activations of neighboring grid "
        "points, and angles between successive steps. Their medians and "
        "their largest values inside the gap (with its edges) are divided by "
        "those outside. At 1 the curve is the same in the gap; above 1 its "
        "steps are longer, or it turns more. The last stage, truth, has the "
        "true images.",
        run_exhibits.draw_stage_rows(rows, JUMP_PANELS, ylabel),
        rows,
    )


def _show_curve(
    analysis: RunAnalysis, curve: Curve, kind: str, title: str, *content: Any
) -> Exhibit:
    """Makes an exhibit of one curve, named after it if there are several."""
    name = f"{to_file_name(analysis.name)}_{kind}"
    if len(analysis.curves) > 1:
        # Names of levels may have characters that no file name can have.
        label = re.sub(r"[^\w.+-]", "_", curve.label)
        if label != curve.label.replace(" ", "_"):
            labels = [other.label for other in analysis.curves]
            label += f"_{labels.index(curve.label)}"
        name += f"_{label}"
    return Exhibit(name, f"{title}: {_name_curve(analysis, curve)}", *content)


def _name_curve(analysis: RunAnalysis, curve: Curve) -> str:
    if len(analysis.curves) == 1:
        return analysis.name
    return f"{analysis.name}, {curve.label}"
