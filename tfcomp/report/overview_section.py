"""Scores, samples and error landscapes (figures 1b, 1c, 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.evaluation.measures import measure_border
from tfcomp.evaluation.pictures import choose_spread
from tfcomp.evaluation.pictures import get_region_mask
from tfcomp.evaluation.pictures import picture_samples
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_curves
from tfcomp.figures import draw_maps
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.setting_tables import group_by_space
from tfcomp.report.setting_tables import list_points


def make_overview(studies: Sequence[Study]) -> Section:
    """What the runs reach, ID and OOD."""
    exhibits = [make_scores(studies)]
    for study in studies:
        exhibits += make_samples(study)
    for group in group_by_space(studies):
        exhibits.append(make_landscapes(group))
    exhibits += [make_border(s) for s in studies if _has_border(s)]
    return Section(
        "overview",
        "Scores and errors",
        "Errors are pixel MSE relative to that of a blank image: 1 is no "
        "better than drawing nothing. Every grid point is scored.",
        exhibits,
    )


def make_scores(studies: Sequence[Study]) -> Exhibit:
    """All scores as a table."""
    rows = [
        {"run": study.name, "subset": subset, **scores}
        for study in studies
        for subset, scores in study.evaluation.scores.items()
    ]
    return Exhibit(
        "scores",
        "Scores",
        "ID: combinations outside the held-out region; OOD: inside. "
        "position_accuracy: peak within 1 px in x and y; position_error in "
        "px; num_peaks: local extrema above half the height of a bump.",
        rows=rows,
    )


def make_samples(study: Study) -> list[Exhibit]:
    """Truth and output at a spread of ID and of OOD positions."""
    exhibits = []
    for subset, chosen in (
        ("id", study.splits.is_id),
        ("ood", study.splits.is_ood),
    ):
        if chosen.any():
            title = f"{study.name}, {subset.upper()}"
            exhibits.append(
                Exhibit(
                    f"{study.name}_samples_{subset}",
                    f"Samples: {title}",
                    "True image (above) and output (below) at a spread of "
                    f"{subset.upper()} grid points; column titles are the "
                    "factor values. Grey scale from 0 to 1.",
                    picture_samples(
                        study.dataset, study.evaluation, subset, title
                    ),
                    list_samples(study, chosen),
                )
            )
    return exhibits


def list_samples(study: Study, chosen: np.ndarray) -> list[dict[str, Any]]:
    """The points that are shown, with their errors."""
    points = list_points(study, {"relative_mse": study.relative_error})
    return [points[row] for row in choose_spread(np.flatnonzero(chosen))]


def make_landscapes(studies: Sequence[Study]) -> Exhibit:
    """The error at every grid point, on one scale for all runs."""
    errors = {study.name: study.relative_error for study in studies}
    first = studies[0]
    x, y = first.dataset.space
    figure = draw_maps(
        {
            name: error.reshape(first.dataset.space.shape)
            for name, error in errors.items()
        },
        get_region_mask(first.dataset),
        label="MSE / MSE of a blank image",
        axis_names=(x.label, y.label),
        panel_size=3.2,
    )
    suffix = "" if len(studies) > 1 else f"_{first.name}"
    return Exhibit(
        f"landscape{suffix}",
        "Error landscape",
        "Error at every combination of the factors, as a multiple of the "
        "error of a blank image there. The outline is the held-out region, "
        "on the edges of its grid cells.",
        figure,
        list_points(first, errors),
    )


def make_border(study: Study) -> Exhibit:
    """Error against the distance from the border of the region (C3)."""
    steps = study.border_distance
    distances = np.arange(1, steps.max() + 1)
    groups = [study.relative_error[steps == step] for step in distances]
    measured = measure_border(study)
    rho = measured["border_rank_correlation"]
    known = "none" if rho is None else f"{rho:.2f}"
    mean = np.array(measured["border_relative_mse"])
    figure = draw_curves(
        distances,
        {"mean over positions": mean},
        xlabel="distance to the nearest ID grid point (grid steps)",
        ylabel="MSE / blank",
        title=f"{study.name}, OOD",
        bands={
            "mean over positions": (
                np.array([np.percentile(g, 25) for g in groups]),
                np.array([np.percentile(g, 75) for g in groups]),
            )
        },
    )
    rows: list[dict[str, Any]] = [
        {"distance": int(d), "positions": len(g), "relative_mse": float(m)}
        for d, g, m in zip(distances, groups, mean, strict=True)
    ]
    return Exhibit(
        f"{study.name}_border",
        f"Error and distance to ID: {study.name}",
        "OOD error against the distance (larger of the two axes) to the "
        "nearest ID grid point; band: quartiles over positions. Spearman "
        f"rank correlation over OOD positions: {known}.",
        figure,
        rows,
    )


def _has_border(study: Study) -> bool:
    return study.has_map and study.border_distance.max() > 1
