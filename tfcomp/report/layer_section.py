"""Geometry and probes, stage by stage (figures 2, 3d, 4d, 11-14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfcomp.evaluation.pictures import VOLUME_LABEL
from tfcomp.evaluation.pictures import get_region_mask
from tfcomp.evaluation.pictures import label_volume
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_maps
from tfcomp.figures import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.setting_tables import list_points

PANELS = {
    "factorization": (
        "Factorization",
        "score (1: orthogonal)",
        {
            "eq. 7": "factorization",
            "cosine form": "cosine_factorization",
        },
        "Mean over all grid points of 1 - |g_xy| / (g_xx + g_yy), from 1/2 "
        "to 1 (left), and of 1 - |g_xy| / sqrt(g_xx g_yy), from 0 to 1 "
        "(right); g is the metric tensor of a stage.",
    ),
    "probes": (
        "Linear probes",
        "R²",
        {"ID, out of fold": "probe_r2_id", "ID to OOD": "probe_r2_ood"},
        "R² of ridge regression from the activations of a stage to the "
        "factors: out of fold over ID points (left), fitted on all ID "
        "points and scored on OOD points (right). 1 is perfect, 0 no better "
        "than the mean.",
    ),
    "log_volume": (
        "Log-volume",
        VOLUME_LABEL,
        {"ID": "log_volume_id", "OOD": "log_volume_ood"},
        "Mean over ID (left) and OOD points (right) of log sqrt(det g): how "
        "much a stage stretches the factors.",
    ),
}


def make_layers(studies: Sequence[Study]) -> Section:
    """How the representation changes from stage to stage."""
    has_pairs = any(len(s.dataset.space.ordered) > 1 for s in studies)
    exhibits = [
        make_lines(studies, name)
        for name in PANELS
        if has_pairs or name != "factorization"
    ]
    exhibits += [make_volume_maps(s) for s in studies if s.has_map]
    return Section(
        "layers",
        "Geometry, stage by stage",
        "From exact Jacobians of every stage with respect to the factors "
        "(differences over the grid for one-hot codes), at every grid point.",
        exhibits,
    )


def make_lines(studies: Sequence[Study], name: str) -> Exhibit:
    """Numbers against stage, one line a run."""
    title, ylabel, panels, caption = PANELS[name]
    if name == "log_volume":
        ylabel = label_volume(studies[0].dataset.space)
    stages = {study.name: study.stages for study in studies}
    figure = draw_stage_panels(
        {
            panel: {
                study.name: [
                    study.layers.summary[stage][key] for stage in study.stages
                ]
                for study in studies
            }
            for panel, key in panels.items()
        },
        stages,
        ylabel=ylabel,
        title=title,
    )
    rows: list[dict[str, Any]] = [
        {
            "run": study.name,
            "stage": stage,
            **{k: study.layers.summary[stage][k] for k in panels.values()},
            "dead_fraction": study.layers.summary[stage]["dead_fraction"],
        }
        for study in studies
        for stage in study.stages
    ]
    return Exhibit(name, title, caption, figure, rows)


def make_volume_maps(study: Study) -> Exhibit:
    """Log-volume over the grid, all stages on one colour scale."""
    shape = study.dataset.space.shape
    x, y = study.dataset.space
    volumes = study.log_volume
    figure = draw_maps(
        {stage: values.reshape(shape) for stage, values in volumes.items()},
        get_region_mask(study.dataset),
        title=f"{study.name}: log-volume",
        label=VOLUME_LABEL,
        axis_names=(x.label, y.label),
    )
    return Exhibit(
        f"{study.name}_log_volume",
        f"Log-volume maps: {study.name}",
        "log sqrt(det g) at every grid point, per stage, on one colour scale. "
        "The outline is the held-out region.",
        figure,
        list_points(study, volumes),
    )
