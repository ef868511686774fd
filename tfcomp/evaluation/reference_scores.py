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


def score_references(dataset: Dataset, truth: np.ndarray) -> References:
    """Relative MSE over ID and over OOD points of the grid.

    Training points that lack a factor, as stripes do, teach nothing here; of
    many, a fixed random choice counts. By name of the predictor, then by `id`
    and `ood`, what exists.
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
        np.broadcast_to(effects[0], (len(truth), effects.shape[1])),
        make_design(index, space.shape) @ effects,
        dataset.render_array(train[find_nearest(index, known, space)]),
    )
    blank = np.broadcast_to(dataset.reference, truth.shape)
    *found, blank = (
        compute_mse_per_image(i.reshape(truth.shape), truth)
        for i in (*drawn, blank)
    )
    subsets = {"id": splits.is_id, "ood": splits.is_ood}
    return {
        name: {
            subset: float(error[rows].mean() / blank[rows].mean())
            for subset, rows in subsets.items()
            if blank[rows].any()
        }
        for name, error in zip(PREDICTORS, found, strict=True)
    }
