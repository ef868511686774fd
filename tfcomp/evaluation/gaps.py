"""Curves of one ordered factor with a held-out range, and what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.analysis import interpolation
from tfcomp.analysis.manifolds import compute_gap_statistics
from tfcomp.datasets.grid_maps import Curve

if TYPE_CHECKING:
    from tfcomp.evaluation.study import Study

TRUTH = "truth"


def list_gaps(study: Study) -> list[Curve]:
    """The curves with a held-out point between two known ones."""
    return [
        curve
        for curve in study.curves
        if len(interpolation.find_edges(*_describe(study, curve))[0])
    ]


def score_gap(study: Study, curve: Curve) -> interpolation.Interpolation:
    """Interpolation scores of the held-out points of a curve."""
    images = study.bright_outputs, study.bright_truth
    return interpolation.compute_interpolation(
        *(part[curve.rows] for part in images), *_describe(study, curve)
    )


def compare_gap(
    study: Study, curve: Curve, stage: str
) -> dict[str, float | None]:
    """Steps and angles of a stage, or of `TRUTH`, inside a gap over outside."""
    if stage == TRUTH:
        values = study.bright_truth[curve.rows]
    else:
        from tfcomp.evaluation.stage_blocks import StageReader

        grid = study.splits.grid[curve.rows]
        reader = StageReader(study.run.model, len(grid), [stage])
        ((_, _, blocks),) = reader.iterate(grid)
        values = np.concatenate(list(blocks), axis=1)  # [points, units]
    return compute_gap_statistics(values, *_describe(study, curve))


def _describe(study: Study, curve: Curve) -> tuple[np.ndarray, bool]:
    """Which points of a curve are held out, and whether it is closed."""
    return study.splits.is_ood[curve.rows], curve.factor.periodic
