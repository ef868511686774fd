"""Maps of the error, and its dependence on the distance to ID (figure 1b)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.datasets.solvable import certify_dataset, mark_certified
from tfcomp.evaluation.image_metrics import compute_border
from tfcomp.evaluation.metrics import list_metrics
from tfcomp.evaluation.pictures import (
    describe_planes,
    label_error,
    picture_maps,
)
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_border, describe_errors
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row, group_runs, list_points, show_run
from tfcomp.report.run_names import to_file_name


def make_errors(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows errors by combination, and by distance to ID."""
    edged = [s for s in analyses if len(s.dataset.space) > 1]
    edged = [s for s in edged if len(list_distances(s)) > 1]
    border = [{"run": s.name, **compute_border(s)} for s in edged]
    groups = group_runs([analysis for analysis in analyses if analysis.has_map])
    scores = Exhibit(
        "all_scores",
        "All scores",
        " ".join(
            f"{m.name}: {m.about}{f', in {m.unit}' if m.unit else ''}."
            for m in list_metrics("image")
        ),
        rows=[
            {"run": analysis.name, "subset": subset, **found}
            for analysis in analyses
            for subset, found in analysis.evaluation.scores.items()
        ],
    )
    return Section(
        "errors",
        "Errors",
        "ID combinations of factors lie outside the held-out region, OOD "
        "combinations inside. A relative error is the pixel MSE divided by the "
        "pixel MSE of a reference (a blank image if the data declare a "
        "constant ground, else the mean training image): 1 is no better than "
        "the reference.",
        [
            *(make_landscapes(group) for group in groups),
            *(shown for group in groups for shown in map_certified(group[0])),
            *([_make_border(edged, border)] if edged else []),
            scores,
        ],
        describe_border(border) or describe_errors(scores.rows),
    )


def make_landscapes(analyses: Sequence[RunAnalysis]) -> Exhibit:
    """Maps the errors of runs with the same factors and region."""
    errors = {
        analysis.name: analysis.for_maps.error_ratio for analysis in analyses
    }
    first = analyses[0].for_maps
    suffix = "" if len(analyses) > 1 else f"_{to_file_name(first.name)}"
    return Exhibit(
        f"landscape{suffix}",
        "Error landscape",
        "Error at every combination of the factors, as a multiple of the "
        f"error of {first.dataset.reference_name} there. The held-out region "
        "is outlined, on the edges of its grid cells."
        + describe_planes(first.dataset),
        picture_maps(first.dataset, errors, label_error(first.dataset)),
        list_points(first, errors),
    )


def map_certified(analysis: RunAnalysis) -> list[Exhibit]:
    """Maps which combinations training determines, unless all are alike."""
    data, mixed = analysis.for_maps.dataset, {}
    for order, found in certify_dataset(data).items():
        marks = None if found is None else mark_certified(data, found)
        if marks is not None and {0.0, 1.0} <= set(marks[np.isfinite(marks)]):
            mixed[f"order {order}"] = marks
    if not mixed:
        return []
    return [
        show_run(
            analysis,
            "certified",
            "What training determines",
            "1: the training combinations determine every quantity of this "
            "held-out combination that has no interactions of more factors "
            "than the order. 0: they do not. Gray: not held out."
            + describe_planes(data),
            picture_maps(data, mixed, "determined", limits=(0.0, 1.0)),
            list_points(analysis.for_maps, mixed),
        )
    ]


def _make_border(
    analyses: Sequence[RunAnalysis], found: Sequence[Row]
) -> Exhibit:
    lines = {
        analysis.name: dict(
            zip(
                list_distances(analysis),
                row["border_relative_mse"],
                strict=True,
            )
        )
        for analysis, row in zip(analyses, found, strict=True)
    }
    distances = sorted(set().union(*lines.values()))
    figure = draw_curves(
        distances,
        {
            name: [line.get(d) for d in distances]
            for name, line in lines.items()
        },
        xlabel="distance to the nearest ID grid point (grid steps)",
        ylabel=label_error(analyses[0].dataset),
    )
    return Exhibit(
        "border",
        "Error and distance to ID",
        "Mean OOD error, as a multiple of the error of "
        f"{analyses[0].dataset.reference_name}, against the distance to the "
        "nearest ID grid point: the largest of the distances along the "
        "factors, where another class of a categorical factor is one step.",
        figure,
        [
            {"run": name, "distance": distance, "relative_mse": error}
            for name, line in lines.items()
            for distance, error in line.items()
        ],
    )


def list_distances(analysis: RunAnalysis) -> list[float]:
    """Returns the distinct distances of held-out points to ID, sorted."""
    steps = analysis.border_distance
    return np.unique(steps[np.isfinite(steps) & (steps > 0)]).tolist()
