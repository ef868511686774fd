"""How well the predictors do that need no network, on the data of a run."""

import numpy as np

from tfcomp.analysis.reference_predictors import (
    find_nearest,
    fit_effects,
    make_design,
)
from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import MAX_AVERAGED, choose_rows

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
