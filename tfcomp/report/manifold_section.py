"""Manifolds of stage activations and their rank (figure 9b)."""

import sys
from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.manifolds import UMAP_HINT, compute_umap, has_umap
from tfcomp.evaluation.study import FEW_POINTS, Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.manifold_plots import draw_manifolds
from tfcomp.report.findings import describe_course
from tfcomp.report.layer_section import has_numbers
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import (
    draw_stage_rows,
    list_points,
    list_stages,
    show_run,
)


def make_manifolds(studies: Sequence[Study]) -> Section:
    """Shows how the grid of factors lies in the space of a stage."""
    ranks = make_ranks(studies)
    return Section(
        "manifolds",
        "Manifolds",
        "Every combination of factors is a point in the space of a stage's "
        f"activations; of a sample, at most {FEW_POINTS:,} are shown. "
        "The same data are in TensorBoard's projector tab.",
        [ranks, *map(make_pca, studies)],
        describe_course(ranks.rows, "id", "the effective rank over ID points"),
    )


def make_umaps(studies: Sequence[Study]) -> Section:
    """Shows the neighborhoods of points in every stage, by UMAP."""
    return Section(
        "umap",
        "UMAP",
        "It keeps neighborhoods, not distances.",
        [shown for study in studies for shown in try_umap(study)],
        "" if has_umap() else UMAP_HINT,
    )


def make_ranks(studies: Sequence[Study]) -> Exhibit:
    """Draws the effective rank against the stage."""
    rows = list_stages(
        studies, lambda s, stage: dict(s.few.numbers[stage].ranks)
    )
    panels = {s.upper(): s for s in ("id", "ood") if has_numbers(rows, s)}
    return Exhibit(
        "effective_rank",
        "Effective rank",
        "Participation ratio of the eigenvalues of the covariance of a "
        "stage's activations over ID and over OOD points. It grows with the "
        "number of points, so ID and OOD cannot be compared.",
        draw_stage_rows(rows, panels, "participation ratio")
        if panels
        else None,
        rows,
    )


def make_pca(study: Study) -> Exhibit:
    """Draws the first two principal components of every stage."""
    study = study.few
    found = {s: n.components for s, n in study.numbers.items()}
    shares = [f"{s} {c.explained[:2].sum():.0%}" for s, c in found.items()]
    return _show_points(
        study,
        "pca",
        "Principal components",
        "The first two principal components of the activations, colored by "
        "factor; the markers tell ID from OOD. They hold this share of the "
        f"variance: {', '.join(shares)}.",
        {s: _take_two(c.features) for s, c in found.items()},
    )


def try_umap(study: Study) -> list[Exhibit]:
    """UMAP of every stage, if it is installed and does not fail."""
    try:
        return [make_umap(study)] if has_umap() else []
    except OSError as error:
        print(f"UMAP of {study.name} is left out: {error}", file=sys.stderr)
        return []


def make_umap(study: Study) -> Exhibit:
    """Draws UMAP of every stage."""
    study = study.few
    return _show_points(
        study,
        "umap",
        "UMAP",
        "UMAP of the first 50 principal components (15 neighbors, least "
        "distance 0.1, seed 42), colored by factor.",
        {
            stage: compute_umap(n.components)
            for stage, n in study.numbers.items()
        },
    )


def _take_two(features: np.ndarray) -> np.ndarray:
    """The first two features; a code of one unit has a line, at 0."""
    missing = max(2 - features.shape[1], 0)
    return np.pad(features[:, :2], ((0, 0), (0, missing)))


def _show_points(
    study: Study,
    kind: str,
    title: str,
    caption: str,
    points: dict[str, np.ndarray],
) -> Exhibit:
    """Draws and lists two coordinates of every grid point in every stage."""
    space, splits = study.dataset.space, study.splits
    figure = draw_manifolds(
        points,
        splits.grid,
        splits.is_ood,
        space=space.factors,
        title=f"{study.name}, {kind.upper()}",
    )
    columns = {
        f"{stage}_{axis}": column
        for stage, values in points.items()
        for axis, column in enumerate(values.T, 1)
    }
    rows = list_points(study, columns)
    return show_run(study, kind, title, caption, figure, rows)
