"""One ordered factor with a gap: error, interpolation, jumps (figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis.interpolation import Interpolation
from tfcomp.analysis.interpolation import interpolate_edges
from tfcomp.analysis.interpolation import summarize_interpolation
from tfcomp.datasets.grid_curves import Curve
from tfcomp.evaluation.pictures import describe_points
from tfcomp.evaluation.pictures import picture_error_curve
from tfcomp.evaluation.study import TRUTH
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_curves
from tfcomp.figures import draw_rows
from tfcomp.figures import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.setting_tables import list_points

SHOWN_IMAGES = 9


def make_curves(studies: Sequence[Study]) -> Section:
    """What a network draws where a range of one factor was never seen."""
    chosen = [s for s in studies if s.curves]
    exhibits = [make_error(study) for study in chosen]
    rows, jumps = [], []
    for study in chosen:
        for curve in study.gaps:
            scores = study.score_gap(curve)
            rows.append(make_row(study, curve, scores))
            exhibits.append(make_images(study, curve, scores))
            exhibits.append(make_weights(study, curve, scores))
        jumps += list_jumps(study)
    if rows:
        exhibits.insert(0, make_table(rows))
    if jumps:
        exhibits.append(make_jumps(jumps))
    return Section(
        "curves",
        "Across the gap",
        "Runs with one ordered factor. Between the two images at the edges "
        "of a held-out range, does the network draw what lies between, or "
        "the linear interpolation of the two? R² is 1 - SSE/SST about zero "
        "in pixel space.",
        exhibits,
    )


def make_error(study: Study) -> Exhibit:
    """MSE against the factor, the gap shaded (figure 9a)."""
    return Exhibit(
        f"{study.name}_error_curve",
        f"Error against {study.curves[0].factor.name}: {study.name}",
        "MSE over pixels at every grid point; shaded: held out.",
        picture_error_curve(study.dataset, study.evaluation),
        list_points(study, {"mse": study.error}),
    )


def make_images(study: Study, curve: Curve, scores: Interpolation) -> Exhibit:
    """Truth, output and interpolation across the gap (figures 9c, 9d)."""
    is_ood = study.splits.is_ood[curve.rows]
    truth = study.evaluation.truth[curve.rows]
    linear = interpolate_edges(truth, is_ood, curve.factor.periodic)
    before, after = scores.edges[0][0], scores.edges[-1][1]
    count = min(SHOWN_IMAGES, len(scores.rows))
    spread = np.linspace(0, len(scores.rows) - 1, count).round().astype(int)
    shown = np.array([before, *scores.rows[spread], after])
    return Exhibit(
        _name(study, curve, "gap_images"),
        f"Across the gap: {_title(study, curve)}",
        "True image, output, and linear interpolation of the true images "
        "at the edges, which are the first and the last column and were "
        "trained on. Grey scale from 0 to 1.",
        draw_rows(
            {
                "truth": truth[shown],
                "output": study.evaluation.images[curve.rows[shown]],
                "edges, linear": linear[shown],
            },
            title=_title(study, curve),
            first_row=study.dataset.first_row,
            column_titles=describe_points(study.dataset, curve.rows[shown]),
        ),
    )


def make_weights(study: Study, curve: Curve, scores: Interpolation) -> Exhibit:
    """R² on the edge images at every held-out point."""
    values = curve.factor.values()[scores.rows]
    r2 = {
        "output on the edges, best weights": scores.r2,
        "output, linear weights": scores.linear_r2,
        "true image on the edges": scores.truth_r2,
    }
    figure = draw_curves(
        np.arange(len(values)) if np.any(np.diff(values) < 0) else values,
        r2,
        xlabel=curve.factor.label,
        ylabel="R² in pixel space",
        title=_title(study, curve),
    )
    rows = [
        {
            curve.factor.name: float(values[i]),
            "fraction": float(scores.fraction[i]),
            "weight_before": float(scores.weights[i, 0]),
            "weight_after": float(scores.weights[i, 1]),
            "interpolation_r2": float(scores.r2[i]),
            "linear_r2": float(scores.linear_r2[i]),
            "truth_r2": float(scores.truth_r2[i]),
        }
        for i in range(len(values))
    ]
    return Exhibit(
        _name(study, curve, "interpolation"),
        f"Interpolation of the edges: {_title(study, curve)}",
        "R² of the output on the two true edge images with the best weights "
        "(listed), with those of the linear interpolation, and, for "
        "comparison, of the true image: what a network that truly "
        "generalizes would score.",
        figure,
        rows,
    )


def make_row(
    study: Study, curve: Curve, scores: Interpolation
) -> dict[str, Any]:
    """The scores of a curve with its gap, for the table."""
    error = study.error[curve.rows[scores.rows]]
    steps = len(scores.rows) + len(np.unique(scores.edges, axis=0))
    return {
        "run": study.name,
        "curve": curve.label,
        "gap_width": steps * curve.factor.step,
        **summarize_interpolation(scores),
        "ood_mse": float(error.mean()),
    }


def make_table(rows: list[dict[str, Any]]) -> Exhibit:
    """All curves; over the width of the gap where there are several."""
    widths = np.array([row["gap_width"] for row in rows])
    figure = None
    if len(set(widths.round(3))) > 1:
        order = np.argsort(widths, kind="stable")
        series = {
            "output on the edges, best weights": "interpolation_r2",
            "output, linear weights": "linear_r2",
            "true image on the edges": "truth_r2",
        }
        figure = draw_curves(
            widths[order],
            {k: [rows[i][v] for i in order] for k, v in series.items()},
            xlabel="distance of the edges (unit of the factor)",
            ylabel="mean R² over the gap",
        )
    return Exhibit(
        "interpolation",
        "Interpolation scores",
        "Mean (and least) R² of held-out outputs on the two edge images, "
        "with the weights of the linear interpolation, and of the true "
        "images; gap_width: distance of the edges.",
        figure,
        rows,
    )


def list_jumps(study: Study) -> list[dict[str, Any]]:
    """Gap statistics of every stage and of the true images."""
    return [
        {
            "run": study.name,
            "curve": curve.label,
            "stage": stage,
            **study.compare_gap(curve, stage),
        }
        for curve in study.gaps
        for stage in [*study.stages, TRUTH]
    ]


def make_jumps(rows: list[dict[str, Any]]) -> Exhibit:
    """Whether the curve of activations jumps in the gap (C20)."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(f"{row['run']}, {row['curve']}", []).append(row)
    panels = {
        "steps, median": "speed_ratio",
        "longest step": "max_speed_ratio",
        "turning, median": "turning_ratio",
        "sharpest turn": "max_turning_ratio",
    }
    figure = draw_stage_panels(
        {
            panel: {
                name: [r[key] for r in line] for name, line in lines.items()
            }
            for panel, key in panels.items()
        },
        {name: [r["stage"] for r in line] for name, line in lines.items()},
        ylabel="inside the gap / outside",
    )
    return Exhibit(
        "gap_statistics",
        "Jumps of the manifold",
        "Steps between the activations of neighbouring grid points, and the "
        "angle between successive steps: inside the gap (with its edges) "
        "over outside, of medians and of maxima. 1: the curve does not know "
        "of the gap; above 1: it runs faster, or turns more, there. truth: "
        "the true images.",
        figure,
        rows,
    )


def _title(study: Study, curve: Curve) -> str:
    if len(study.curves) == 1:
        return study.name
    return f"{study.name}, {curve.label}"


def _name(study: Study, curve: Curve, kind: str) -> str:
    if len(study.curves) == 1:
        return f"{study.name}_{kind}"
    return f"{study.name}_{kind}_{curve.label.replace(' ', '_')}"
