"""One ordered factor with a gap: error, interpolation, jumps (figure 9)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis import interpolation
from tfcomp.analysis.interpolation import Interpolation
from tfcomp.datasets.grid_maps import Curve
from tfcomp.evaluation.pictures import describe_points, picture_error_curve
from tfcomp.evaluation.study import TRUTH, Study
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report import run_exhibits
from tfcomp.report.findings import describe_gaps
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row

Gap = tuple[Study, Curve, Interpolation]

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


def make_gaps(studies: Sequence[Study]) -> Section:
    """Shows what a network draws where it never saw a range of one factor."""
    exhibits = [
        run_exhibits.show_run(
            study,
            "error_curve",
            f"Error against {study.curves[0].factor.name}",
            "MSE over pixels at every grid point. The held-out range is "
            "shaded.",
            picture_error_curve(study.dataset, study.evaluation),
            run_exhibits.list_points(study, {"mse": study.error}),
        )
        for study in studies
        if study.curves
    ]
    gaps = list_scored_gaps(studies)
    rows = [summarize_curve(*gap) for gap in gaps]
    for gap in gaps:
        exhibits += [make_images(*gap), _make_weights(*gap)]
    if gaps:
        exhibits = [_make_table(rows), *exhibits, _make_jumps(gaps)]
    return Section(
        "gaps",
        "Across the gap",
        "These runs have one ordered factor. Between the two images at the "
        "edges of a held-out range, does the network draw what lies between, "
        "or the linear interpolation of the two? R² is 1 - SSE/SST about "
        "zero in pixel space.",
        exhibits,
        describe_gaps(rows),
    )


def list_scored_gaps(studies: Sequence[Study]) -> list[Gap]:
    """The curves with a held-out range, and their scores."""
    return [
        (study, curve, study.score_gap(curve))
        for study in studies
        for curve in study.gaps
    ]


def make_images(study: Study, curve: Curve, scores: Interpolation) -> Exhibit:
    """Shows truth, output and interpolation in a gap (figures 9c, 9d)."""
    is_ood = study.splits.is_ood[curve.rows]
    truth = study.evaluation.truth[curve.rows]
    edged = truth, is_ood, curve.factor.periodic
    linear = interpolation.interpolate_edges(*edged)
    last = len(scores.rows) - 1
    spread = np.linspace(0, last, min(9, last + 1)).round().astype(int)
    before, after = scores.edges[0][0], scores.edges[-1][1]
    shown = np.array([before, *scores.rows[spread], after])
    rows = curve.rows[shown]
    images = {"truth": truth[shown], "output": study.evaluation.images[rows]}
    figure = draw_rows(
        images | {"edges, linear": linear[shown]},
        title=_name_curve(study, curve),
        first_row=study.dataset.first_row,
        column_titles=describe_points(study.dataset, rows),
    )
    return _show_curve(
        study,
        curve,
        "gap_images",
        "Across the gap",
        "True image, output, and linear interpolation of the true images at "
        "the edges. The edges are the first and the last column and were "
        "trained on. The gray scale reaches from 0 to 1.",
        figure,
    )


def _make_weights(study: Study, curve: Curve, scores: Interpolation) -> Exhibit:
    values = curve.factor.values()[scores.rows]
    # A gap of a periodic factor may contain its wrap.
    is_wrapped = np.any(np.diff(values) < 0)
    numbers = scores.r2, scores.linear_r2, scores.truth_r2
    figure = draw_curves(
        np.arange(len(values)) if is_wrapped else values,
        dict(zip(R2_NAMES.values(), numbers, strict=True)),
        xlabel=curve.factor.label,
        ylabel="R² in pixel space",
        title=_name_curve(study, curve),
    )
    return _show_curve(
        study,
        curve,
        "interpolation",
        "Interpolation of the edges",
        "R² of the output on the two true edge images, with the best weights "
        "(which the table lists) and with those of the linear interpolation. "
        "For comparison, R² of the true image: what a network that truly "
        "generalizes would score.",
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


def summarize_curve(study: Study, curve: Curve, scores: Interpolation) -> Row:
    """The scores of a curve with a gap, for the table."""
    error = study.error[curve.rows[scores.rows]]
    steps = len(scores.rows) + len(np.unique(scores.edges, axis=0))
    return {
        "run": study.name,
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
        {"run": study.name, "curve": curve.label, "stage": stage}
        | study.compare_gap(curve, stage)
        for study, curve, _ in gaps
        for stage in [*study.stages, TRUTH]
    ]
    ylabel = "inside the gap / outside"
    return Exhibit(
        "gap_statistics",
        "Jumps of the manifold",
        "Length of the steps between the activations of neighboring grid "
        "points, and angles between successive steps. Their medians and "
        "their largest values inside the gap (with its edges) are divided by "
        "those outside. At 1 the curve does not know of the gap; above 1 it "
        "runs faster, or turns more, there. The last place, truth, has the "
        "true images.",
        run_exhibits.draw_stage_rows(rows, JUMP_PANELS, ylabel),
        rows,
    )


def _show_curve(
    study: Study, curve: Curve, kind: str, title: str, *content: object
) -> Exhibit:
    """An exhibit of one curve, whose name is told if there are several."""
    name = f"{study.name}_{kind}"
    if len(study.curves) > 1:
        name += f"_{curve.label.replace(' ', '_')}"
    return Exhibit(name, f"{title}: {_name_curve(study, curve)}", *content)


def _name_curve(study: Study, curve: Curve) -> str:
    if len(study.curves) == 1:
        return study.name
    return f"{study.name}, {curve.label}"
