"""Manifolds of stage activations and their rank (figure 9b)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tfcomp.analysis.effective_rank import compute_effective_ranks
from tfcomp.analysis.manifolds import compute_pca
from tfcomp.analysis.manifolds import compute_umap
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_manifolds
from tfcomp.figures import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.setting_tables import list_points


def make_manifolds(studies: Sequence[Study]) -> Section:
    """How the grid of factors lies in the space of a stage."""
    exhibits = [make_ranks(studies)]
    for study in studies:
        exhibits += [make_pca(study), make_umap(study)]
    return Section(
        "manifolds",
        "Manifolds",
        "Every grid point is a point in the space of a stage's activations. "
        "The same data are in TensorBoard's projector tab.",
        exhibits,
    )


def make_ranks(studies: Sequence[Study]) -> Exhibit:
    """Effective rank against stage."""
    ranks = {
        (study.name, stage): compute_effective_ranks(
            study.numbers[stage].features, study.splits.is_ood
        )
        for study in studies
        for stage in study.stages
    }
    figure = draw_stage_panels(
        {
            panel: {
                study.name: [
                    ranks[study.name, stage][subset]["participation_ratio"]
                    for stage in study.stages
                ]
                for study in studies
            }
            for panel, subset in (("ID", "id"), ("OOD", "ood"))
        },
        {study.name: study.stages for study in studies},
        ylabel="participation ratio",
    )
    rows: list[dict[str, Any]] = [
        {"run": name, "stage": stage, "points": subset, **numbers}
        for (name, stage), subsets in ranks.items()
        for subset, numbers in subsets.items()
    ]
    return Exhibit(
        "effective_rank",
        "Effective rank",
        "Participation ratio of the eigenvalues of the covariance of a "
        "stage's activations over ID points (left) and OOD points (right); "
        "num_components is the number with 95 % of the variance. Ranks grow "
        "with the number of points, so ID and OOD do not compare.",
        figure,
        rows,
    )


def make_pca(study: Study) -> Exhibit:
    """The first two principal components of every stage."""
    components = {
        stage: compute_pca(study.numbers[stage].features, 2)
        for stage in study.stages
    }
    points = {stage: c.features for stage, c in components.items()}
    shares = {
        stage: float(c.explained.sum()) for stage, c in components.items()
    }
    listed = ", ".join(f"{s} {share:.0%}" for s, share in shares.items())
    return Exhibit(
        f"{study.name}_pca",
        f"Principal components: {study.name}",
        "The first two principal components of the activations, coloured by "
        "factor; marks tell ID from OOD. Share of the variance that they "
        f"hold: {listed}.",
        draw_points(study, points, f"{study.name}, PCA"),
        list_coordinates(study, points),
    )


def make_umap(study: Study) -> Exhibit:
    """UMAP of every stage."""
    points = {
        stage: compute_umap(study.numbers[stage].features)
        for stage in study.stages
    }
    return Exhibit(
        f"{study.name}_umap",
        f"UMAP: {study.name}",
        "UMAP of the activations (15 neighbours, least distance 0.1, seed "
        "42), coloured by factor. It keeps neighbourhoods, not distances.",
        draw_points(study, points, f"{study.name}, UMAP"),
        list_coordinates(study, points),
    )


def draw_points(
    study: Study, points: dict[str, np.ndarray], title: str
) -> Figure:
    """Scatter plots, or curves where there is one factor."""
    space = study.dataset.space
    return draw_manifolds(
        points,
        study.splits.grid,
        study.splits.is_ood,
        factor_names=[factor.label for factor in space],
        periodic=[factor.periodic for factor in space],
        title=title,
    )


def list_coordinates(
    study: Study, points: dict[str, np.ndarray]
) -> list[dict[str, Any]]:
    """Both coordinates of every point in every stage."""
    columns = {
        f"{stage}_{axis + 1}": values[:, axis]
        for stage, values in points.items()
        for axis in range(2)
    }
    return list_points(study, columns)
