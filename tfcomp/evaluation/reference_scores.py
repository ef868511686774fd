"""Scores beside those of a run: of predictors without a network, of splits."""

import numpy as np

from tfcomp.analysis.reference_predictors import (
    find_nearest,
    fit_effects,
    make_design,
)
from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.datasets import Dataset
from tfcomp.datasets.certificate import Certificate
from tfcomp.datasets.dataset import MAX_AVERAGED, choose_rows
from tfcomp.datasets.solvable import mark_certified
from tfcomp.evaluation.point_scores import Evaluation

PREDICTORS = ("mean_image", "additive", "nearest_id")
# Training points among which the nearest is looked for.
MAX_KNOWN = 2**16

References = dict[str, dict[str, float]]


def draw_references(dataset: Dataset) -> dict[str, np.ndarray]:
    """What the predictors draw at every point of the grid, [n, H, W, C].

    Training points that lack a factor, as stripes do, teach nothing here; of
    many, a fixed random choice counts. Nothing if there is none.
    """
    splits, space = dataset.splits, dataset.space
    train = splits.train[np.isfinite(splits.train).all(axis=1)]
    train = train[choose_rows(len(train), MAX_KNOWN)]
    if not len(train):
        return {}
    known, index = space.to_index(train), space.to_index(splits.grid)
    rows = choose_rows(len(train), MAX_AVERAGED)
    images = dataset.render_array(train[rows])
    effects = fit_effects(known[rows], space.shape, images)
    drawn = (
        np.broadcast_to(effects[0], (len(index), effects.shape[1])),
        make_design(index, space.shape) @ effects,
        dataset.render_array(train[find_nearest(index, known, space)]),
    )
    return {
        name: found.reshape(-1, *dataset.image_shape)
        for name, found in zip(PREDICTORS, drawn, strict=True)
    }


def score_references(dataset: Dataset, truth: np.ndarray) -> References:
    """Relative MSE over ID and over OOD points of the grid, of what they draw.

    By name of the predictor, then by `id` and `ood`, what exists.
    """
    splits = dataset.splits
    blank = compute_mse_per_image(
        np.broadcast_to(dataset.reference, truth.shape), truth
    )
    subsets = {"id": splits.is_id, "ood": splits.is_ood}
    return {
        name: {
            subset: float(error[rows].mean() / blank[rows].mean())
            for subset, rows in subsets.items()
            if blank[rows].any()
        }
        for name, images in draw_references(dataset).items()
        for error in [compute_mse_per_image(images, truth)]
    }


def score_certified(
    dataset: Dataset, evaluation: Evaluation, certificate: Certificate | None
) -> dict[str, float | None]:
    """R^2 over the points of the grid, for `metrics.json`.

    Args:
        dataset: Of the run.
        evaluation: Outputs and truth over the grid.
        certificate: Of order 1, `tfcomp.datasets.solvable.certify_dataset`.

    Returns:
        R^2 of `id`, of `ood` and, among the held-out points, of `certified`
        ones and `others`: those that exist. See `compute_r2`.
    """
    splits = dataset.splits
    rows = {"id": splits.is_id, "ood": splits.is_ood}
    if certificate is not None:
        marks = mark_certified(dataset, certificate)
        rows |= {"certified": marks == 1, "others": marks == 0}
    return {
        name: compute_r2(evaluation.images[chosen], evaluation.truth[chosen])
        for name, chosen in rows.items()
        if chosen.any()
    }


def compute_r2(images: np.ndarray, truth: np.ndarray) -> float | None:
    """1 minus the squared error over that of the mean of the true images.

    Args:
        images: Outputs [n, H, W, C].
        truth: What they should be.

    Returns:
        At most 1. None if the true images are all alike, or an output is not
        finite.
    """
    wrong = np.square(images - truth, dtype=np.float64).sum()
    spread = np.square(truth - truth.mean(axis=0), dtype=np.float64).sum()
    if not spread or not np.isfinite(wrong):
        return None
    return float(1 - wrong / spread)
