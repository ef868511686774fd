"""Scores predictors without a network, and certified points.

Predictors that ignore a factor draw it at its most frequent training value
(`without_<factor>`), or merge the values that look the same in training
(`modulo_<factor>`). A decoder that is no better has not composed it.
"""

from collections.abc import Iterator

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.certificate import Certificate
from tfcomp.datasets.dataset import MAX_AVERAGED
from tfcomp.datasets.factors import (
    find_keys,
    make_keys,
    number,
    number_columns,
)
from tfcomp.datasets.solvable import mark_certified
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics import distances as predictors
from tfcomp.metrics.features import finite_or_none
from tfcomp.metrics.point_scores import Evaluation, compute_mse
from tfcomp.metrics.scores import TINY

# Training points among which the nearest is searched.
MAX_KNOWN = 2**16

References = dict[str, dict[str, float]]


def sample_known(dataset: Dataset) -> np.ndarray:
    """Returns a fixed random sample of training points without NaN, [m, F]."""
    return dataset.splits.train[_choose_known(dataset)]


def _choose_known(dataset: Dataset) -> np.ndarray:
    """Chooses rows of the training table for `sample_known`, [m]."""
    rows = np.flatnonzero(np.isfinite(dataset.splits.train).all(axis=1))
    return rows[choose_rows(len(rows), MAX_KNOWN)]


def draw_references(dataset: Dataset) -> dict[str, np.ndarray]:
    """Draws the images of predictors at every grid point, [n, H, W, C].

    Where a combination has several images, the additive predictor is the best
    fit to single training images, and the nearest combination is shown by its
    mean image: no other copy has a lower error.
    """
    space, chosen = dataset.space, _choose_known(dataset)
    if not len(chosen):
        return {}
    train = dataset.splits.train[chosen]
    known, index = space.to_index(train), space.to_index(dataset.splits.grid)
    rows = choose_rows(len(train), MAX_AVERAGED)
    images = dataset.render_training(chosen[rows])
    effects = predictors.fit_effects(known[rows], space.shape, images)
    nearest = predictors.find_nearest(index, known, space)
    design = predictors.make_design(index, space.shape)
    drawn = {
        "mean_image": np.tile(effects[0], (len(index), 1)),
        "additive": design @ effects,
        "nearest_id": dataset.render_array(train[nearest]),
    }
    shape = dataset.image_shape
    return {name: flat.reshape(-1, *shape) for name, flat in drawn.items()}


def score_references(dataset: Dataset, truth: np.ndarray) -> References:
    """Returns relative MSE and R^2 of predictors, over subsets of the grid."""
    # R^2 is about the mean true image. Ignorant predictors have OOD scores.
    splits, is_copy = dataset.splits, dataset.copies.is_copy
    subsets = {"id": splits.is_id, "ood": splits.is_ood}
    if is_copy.any():
        subsets["ood_new"] = splits.is_ood & ~dataset.select_points(is_copy)
    scores = {
        name: _score(dataset, splits.grid, images, truth, subsets)
        for name, images in draw_references(dataset).items()
    }
    del subsets["id"]
    held_out = {name: rows[splits.is_ood] for name, rows in subsets.items()}
    true = splits.grid[splits.is_ood], truth[splits.is_ood]
    for name, points in list_ignorant(dataset):
        images = dataset.render_array(points)
        found = _score(dataset, true[0], images, true[1], held_out)
        if found.get("ood", 1.0) > TINY:  # else no image shows the factor
            scores[name] = found
    return scores


def list_ignorant(dataset: Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Yields names and points that stand for the held-out ones, [n_ood, F]."""
    splits, space = dataset.splits, dataset.space
    points = splits.grid[splits.is_ood]
    train, index = space.to_index(splits.train), space.to_index(points)
    every = splits.all.factors
    # Points that exist, and held-out ones, of which one factor is replaced.
    places = number_columns(np.concatenate([every, points]))
    for column, factor in enumerate(space):
        seen = train[:, column][train[:, column] >= 0]
        counts = np.bincount(seen, minlength=factor.size)
        values = factor.values()
        kinds = {
            "without": [values],
            "modulo": dataset.copies.aliases.get(factor.name, []),
        }
        for kind, groups in kinds.items():
            others = points.copy()
            for group in groups:
                merged = np.abs(values[:, None] - group).argmin(axis=0)
                is_merged = np.isin(index[:, column], merged)
                most = merged[counts[merged].argmax()]
                others[is_merged, column] = values[most]
            if (others == points).all():
                continue
            replaced = np.append(every[:, column], others[:, column])
            rows = places.copy()
            rows[:, column] = number(replaced)
            known, asked = np.split(make_keys(rows), [len(every)])
            if (find_keys(asked, np.sort(known)) >= 0).all():
                yield f"{kind}_{factor.name}", others


def _score(
    dataset: Dataset,
    points: np.ndarray,
    images: np.ndarray,
    truth: np.ndarray,
    subsets: dict[str, np.ndarray],
) -> dict[str, float]:
    reference = np.broadcast_to(dataset.reference, truth.shape)
    blank = compute_mse(dataset, points, reference, truth)
    error = compute_mse(dataset, points, images, truth)
    scores = {}
    for name, rows in subsets.items():
        if not blank[rows].any():
            continue
        scores[name] = float(error[rows].mean() / blank[rows].mean())
        true = points[rows], truth[rows]
        mean = np.broadcast_to(true[1].mean(axis=0), true[1].shape)
        spread = compute_mse(dataset, true[0], mean, true[1]).mean()
        if spread > TINY * blank[rows].mean():
            scores[f"{name}_r2"] = float(1 - error[rows].mean() / spread)
    return scores


def score_certified(
    dataset: Dataset, evaluation: Evaluation, certificate: Certificate | None
) -> dict[str, float | None]:
    """Returns R^2 over ID, OOD, and OOD certified at order 1 or not."""
    rows = {"id": dataset.splits.is_id, "ood": dataset.splits.is_ood}
    if certificate is not None:
        marks = mark_certified(dataset, certificate)
        rows |= {"certified": marks == 1, "others": marks == 0}
    shown = dataset.splits.grid, evaluation.images, evaluation.truth
    scores = _score(dataset, *shown, rows)
    return {
        name: finite_or_none(scores.get(f"{name}_r2"))
        for name, chosen in rows.items()
        if chosen.any()
    }
