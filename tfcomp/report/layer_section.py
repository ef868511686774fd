"""Geometry and probes, stage by stage (figures 2, 3d, 4d, 11-14)."""

from collections.abc import Sequence

from tfcomp.analysis.finite import finite_or_none
from tfcomp.analysis.geometry import compute_ratio_factorization
from tfcomp.evaluation.derivatives import describe_lost_stages
from tfcomp.evaluation.pictures import (
    describe_planes,
    label_volume,
    picture_maps,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import (
    Row,
    draw_stage_rows,
    list_points,
    list_stages,
    show_run,
)

# Of log-volumes of runs with different factors.
MIXED_UNITS = "log(volume / units of the factors)"
# Exhibits of numbers against the stage, by file name: heading, name of the
# numbers (none for log-volumes, whose unit depends on the factors), title of
# every panel and the column that it shows, caption.
LINES = {
    "factorization": (
        "Factorization",
        "score (1: orthogonal)",
        {
            "eq. 7": "factorization",
            "cosine form": "cosine_factorization",
            "ratio of means": "ratio_factorization",
        },
        "The score says whether the factors move the activations of a stage "
        "in orthogonal directions; g is the metric tensor of the stage. Left: "
        "the mean over all grid points of 1 - |g_xy| / (g_xx + g_yy), from "
        "1/2 to 1. Middle: the mean of 1 - |g_xy| / sqrt(g_xx g_yy), from 0 "
        "to 1. Right: the score on the left as the published code computes "
        "it, for comparison: it divides the mean of |g_xy| by the mean of "
        "g_xx + g_yy, so that points with long directions dominate.",
    ),
    "probes": (
        "Linear probes",
        "R²",
        {"ID, out of fold": "probe_r2_id", "ID to OOD": "probe_r2_ood"},
        "R² of a ridge regression from the activations of a stage to the "
        "factors. Left: at ID points that the regression was not fitted on "
        "(cross-validation). Right: at OOD points, after fitting on all ID "
        "points. 1 is perfect, and 0 is no better than predicting the mean.",
    ),
    "log_volume": (
        "Log-volume",
        "",
        {"ID": "log_volume_id", "OOD": "log_volume_ood"},
        "Mean over ID points (left) and OOD points (right) of log sqrt(det "
        "g), where g is the metric tensor of a stage. It says how much the "
        "stage stretches the factors.",
    ),
}


def make_layers(studies: Sequence[Study]) -> Section:
    """Shows how the representation changes from stage to stage."""
    names = [s.name for s in studies if not s.dataset.space.ordered]
    studies = [s for s in studies if s.dataset.space.ordered]
    notes = [f"{n} is left out: its factors have no order." for n in names]
    notes += [
        f"{s.name}: {describe_lost_stages(s.lost_stages)}."
        for s in studies
        if s.lost_stages
    ]
    has_pairs = any(len(s.dataset.space.ordered) > 1 for s in studies)
    rows = list_stages(studies, measure_stage)
    exhibits = [
        make_lines(studies, name, rows)
        for name in LINES
        if studies and (has_pairs or name != "factorization")
    ]
    for study in studies:
        exhibits += make_volume_maps(study)
    return Section(
        "layers",
        "Geometry, stage by stage",
        "These numbers come from exact Jacobians of every stage with respect "
        "to the factors at every grid point. A one-hot code has no useful "
        "derivative; there they come from differences over the grid. "
        + " ".join(notes),
        exhibits,
    )


def measure_stage(study: Study, stage: str) -> Row:
    """Returns the scores of a stage in `metrics.json` and the ratio of means.

    The ratio is None for a run with a single direction.
    """
    ratio = finite_or_none(compute_ratio_factorization(study.metrics[stage]))
    return {**study.layers.summary[stage], "ratio_factorization": ratio}


def make_lines(
    studies: Sequence[Study], name: str, rows: Sequence[Row]
) -> Exhibit:
    """Draws numbers against the stage, one line a run."""
    title, ylabel, panels, caption = LINES[name]
    units = {label_volume(study.dataset.space) for study in studies}
    ylabel = ylabel or (units.pop() if len(units) == 1 else MIXED_UNITS)
    columns = ["run", "stage", *panels.values(), "dead_fraction"]
    return Exhibit(
        name,
        title,
        caption,
        draw_stage_rows(rows, panels, ylabel, title),
        [{column: row[column] for column in columns} for row in rows],
    )


def make_volume_maps(study: Study) -> list[Exhibit]:
    """Draws the log-volume over the grid, a figure for each pair of factors.

    Its stages share one color scale.
    """
    is_pair, study = len(study.dataset.space) == 2, study.mapped
    dataset, volumes = study.dataset, study.log_volume
    label, title = label_volume(dataset.space), f"{study.name}: log-volume"
    rows = list_points(study, volumes)
    exhibits = []
    for plane in dataset.planes:
        suffix = "" if is_pair else f"_{plane.name}"
        figure = picture_maps(dataset, volumes, label, title, planes=[plane])
        exhibit = show_run(
            study,
            f"log_volume{suffix}",
            "Log-volume maps",
            "log sqrt(det g) at every grid point, a map for each stage, all "
            "on one color scale. The held-out region is outlined."
            + describe_planes(dataset),
            figure,
            rows,
        )
        exhibits.append(exhibit)
        rows = []  # once
    return exhibits
