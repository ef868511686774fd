"""Scores predictors without a network, and certified points.

Predictors that ignore a factor draw it at its most frequent training value
(`without_<factor>`), or merge the values that look the same in training
(`modulo_<factor>`). A decoder that is no better has not composed it.
"""

from collections.abc import Iterator

import numpy as np

from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import MAX_AVERAGED
from tfcomp.datasets.factors import (
    find_keys,
    make_keys,
    number,
    number_columns,
)
from tfcomp.datasets.solvable import Certificate, mark_certified
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics import distances
from tfcomp.metrics.features import finite_or_none
from tfcomp.metrics.point_scores import Evaluation, compute_mse
from tfcomp.metrics.scores import TINY

# Training points among which the nearest is searched.
MAX_KNOWN = 2**16

References = dict[str, dict[str, float]]


def sample_known(dataset: Dataset) -> np.ndarray:
    """Draws a fixed random sample of training points without NaN, [m, F]."""
    return dataset.splits.train[_choose_known(dataset)]


def _choose_known(dataset: Dataset) -> np.ndarray:
    """Chooses rows of the training table for `sample_known`, [m]."""
    rows = np.flatnonzero(np.isfinite(dataset.splits.train).all(axis=1))
    return rows[choose_rows(len(rows), MAX_KNOWN)]


def draw_references(dataset: Dataset) -> dict[str, np.ndarray]:
    """Predicts images at every grid point without a network, [n, H, W, C].

    Where a combination has several images, the additive predictor is the best
    fit to single training images, and the nearest combination is shown by its
    mean image: no other copy has a lower error.
    """
    space = dataset.space
    known_rows = _choose_known(dataset)
    if not len(known_rows):
        return {}

    train = dataset.splits.train[known_rows]
    known = space.to_index(train)
    index = space.to_index(dataset.splits.grid)
    rows = choose_rows(len(train), MAX_AVERAGED)
    images = dataset.render_training(known_rows[rows])
    effects = distances.fit_effects(known[rows], space.shape, images)
    nearest = distances.find_nearest(index, known, space)
    design = distances.make_design(index, space.shape)

    predictions = {
        "mean_image": np.tile(effects[0], (len(index), 1)),
        "additive": design @ effects,
        "nearest_id": dataset.render_array(train[nearest]),
    }
    for name, flat in predictions.items():
        predictions[name] = flat.reshape(-1, *dataset.image_shape)
    return predictions


def score_references(dataset: Dataset, truth: np.ndarray) -> References:
    """Scores predictors without a network.

    Args:
        dataset: Has the split.
        truth: True images over the grid, [n, H, W, C].

    Returns:
        Relative MSE, and R^2 about the mean true image (`<subset>_r2`), by
        predictor and subset. Predictors that ignore a factor have OOD scores.
    """
    splits = dataset.splits
    is_copy = dataset.copies.is_copy
    subsets = {"id": splits.is_id, "ood": splits.is_ood}
    if is_copy.any():
        is_old = dataset.select_points(is_copy)
        subsets["ood_new"] = splits.is_ood & ~is_old
    scores = {}
    for name, images in draw_references(dataset).items():
        scores[name] = _score(dataset, splits.grid, images, truth, subsets)

    del subsets["id"]
    held_out = {name: mask[splits.is_ood] for name, mask in subsets.items()}
    points = splits.grid[splits.is_ood]
    truth = truth[splits.is_ood]
    for name, substitutes in list_ignorant(dataset):
        images = dataset.render_array(substitutes)
        numbers = _score(dataset, points, images, truth, held_out)
        if numbers.get("ood", 1.0) > TINY:  # else no image shows the factor
            scores[name] = numbers
    return scores


def list_ignorant(dataset: Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Lists predictors that ignore a factor, or merge values of it.

    Yields:
        Names, and the points that stand for the held-out ones, [n_ood, F].
    """
    splits = dataset.splits
    space = dataset.space
    points = splits.grid[splits.is_ood]
    index = space.to_index(points)
    train = space.to_index(splits.train)
    every = splits.all.factors
    # Points that exist, and held-out ones, of which one factor is replaced.
    places = number_columns(np.concatenate([every, points]))
    for column, factor in enumerate(space):
        known = train[:, column]
        counts = np.bincount(known[known >= 0], minlength=factor.size)
        values = factor.values()
        kinds = {
            "without": [values],
            "modulo": dataset.copies.aliases.get(factor.name, []),
        }
        for kind, groups in kinds.items():
            substitutes = points.copy()
            for group in groups:
                distance = np.abs(values[:, None] - group)
                merged = distance.argmin(axis=0)
                most = merged[counts[merged].argmax()]
                is_merged = np.isin(index[:, column], merged)
                substitutes[is_merged, column] = values[most]
            if (substitutes == points).all():
                continue

            replaced = np.append(every[:, column], substitutes[:, column])
            rows = places.copy()
            rows[:, column] = number(replaced)
            existing, asked = np.split(make_keys(rows), [len(every)])
            if (find_keys(asked, np.sort(existing)) >= 0).all():
                yield f"{kind}_{factor.name}", substitutes


def _score(
    dataset: Dataset,
    points: np.ndarray,
    images: np.ndarray,
    truth: np.ndarray,
    subsets: dict[str, np.ndarray],
) -> dict[str, float]:
    """Computes relative MSE and R^2 over subsets of points.

    Args:
        dataset: Has the reference image.
        points: The points, [n, F].
        images: Predictions there, [n, H, W, C].
        truth: True images, [n, H, W, C].
        subsets: Masks of points by name, [n] each.
    """
    reference = np.broadcast_to(dataset.reference, truth.shape)
    blank = compute_mse(dataset, points, reference, truth)
    error = compute_mse(dataset, points, images, truth)
    scores = {}
    for name, rows in subsets.items():
        if not blank[rows].any():
            continue
        mean_error = error[rows].mean()
        mean_blank = blank[rows].mean()
        scores[name] = float(mean_error / mean_blank)

        targets = truth[rows]
        mean_image = np.broadcast_to(targets.mean(axis=0), targets.shape)
        distance = compute_mse(dataset, points[rows], mean_image, targets)
        variance = distance.mean()
        if variance > TINY * mean_blank:
            scores[f"{name}_r2"] = float(1 - mean_error / variance)
    return scores


def score_certified(
    dataset: Dataset,
    evaluation: Evaluation,
    certificate: Certificate | None,
) -> dict[str, float | None]:
    """Computes R^2 over ID, OOD, and OOD certified at order 1 or not.

    Args:
        dataset: Has the split.
        evaluation: Outputs and truth over the grid.
        certificate: Says which combinations training images determine; None
            leaves the two parts of OOD out.
    """
    subsets = {"id": dataset.splits.is_id, "ood": dataset.splits.is_ood}
    if certificate is not None:
        marks = mark_certified(dataset, certificate)
        subsets["certified"] = marks == 1
        subsets["others"] = marks == 0
    scores = _score(
        dataset,
        dataset.splits.grid,
        evaluation.images,
        evaluation.truth,
        subsets,
    )
    r2 = {}
    for name, rows in subsets.items():
        if rows.any():
            r2[name] = finite_or_none(scores.get(f"{name}_r2"))
    return r2
