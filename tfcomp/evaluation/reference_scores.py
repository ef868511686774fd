"""Scores predictors without a network and certified points, and draws images
for superposed codes."""

import math

import keras
import numpy as np
import tensorflow as tf

from tfcomp.analysis import reference_predictors as predictors
from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.datasets import Dataset
from tfcomp.datasets.certificate import Certificate
from tfcomp.datasets.dataset import MAX_AVERAGED, choose_rows
from tfcomp.datasets.solvable import mark_certified
from tfcomp.datasets.splits import Splits
from tfcomp.evaluation.point_scores import Evaluation
from tfcomp.models.encodings.codes import FactorIndex
from tfcomp.models.stages import make_stage_model

# Training points among which the nearest is searched.
MAX_KNOWN = 2**16
MAX_SIZE = 2**27  # numbers of images for superposed codes

References = dict[str, dict[str, float]]


def draw_references(dataset: Dataset) -> dict[str, np.ndarray]:
    """Returns the images of predictors at every grid point, [n, H, W, C].

    Training points that lack a factor, as stripes do, are skipped; of many, a
    fixed random sample is used. Empty without training points.
    """
    splits, space = dataset.splits, dataset.space
    train = splits.train[np.isfinite(splits.train).all(axis=1)]
    train = train[choose_rows(len(train), MAX_KNOWN)]
    if not len(train):
        return {}
    known, index = space.to_index(train), space.to_index(splits.grid)
    rows = choose_rows(len(train), MAX_AVERAGED)
    images = dataset.render_array(train[rows])
    effects = predictors.fit_effects(known[rows], space.shape, images)
    nearest = predictors.find_nearest(index, known, space)
    drawn = {
        "mean_image": np.broadcast_to(
            effects[0], (len(index), effects.shape[1])
        ),
        "additive": predictors.make_design(index, space.shape) @ effects,
        "nearest_id": dataset.render_array(train[nearest]),
    }
    shape = dataset.image_shape
    return {name: flat.reshape(-1, *shape) for name, flat in drawn.items()}


def score_references(dataset: Dataset, truth: np.ndarray) -> References:
    """Returns the relative MSE of predictors by name and subset.

    Subsets are the `id` and `ood` points of the grid, where there are some.
    """
    reference = np.broadcast_to(dataset.reference, truth.shape)
    blank = compute_mse_per_image(reference, truth)
    subsets = {"id": dataset.splits.is_id, "ood": dataset.splits.is_ood}
    scores: References = {}
    for name, images in draw_references(dataset).items():
        error = compute_mse_per_image(images, truth)
        scores[name] = {
            subset: float(error[rows].mean() / blank[rows].mean())
            for subset, rows in subsets.items()
            if blank[rows].any()
        }
    return scores


def score_certified(
    dataset: Dataset, evaluation: Evaluation, certificate: Certificate | None
) -> dict[str, float | None]:
    """Returns R^2 (`compute_r2`) over subsets of the grid, for `metrics.json`.

    Subsets are `id`, `ood` and, by a certificate of order 1
    (`certify_dataset`), the held-out points that are `certified` and the
    `others`, where there are any.
    """
    rows = {"id": dataset.splits.is_id, "ood": dataset.splits.is_ood}
    if certificate is not None:
        marks = mark_certified(dataset, certificate)
        rows |= {"certified": marks == 1, "others": marks == 0}
    return {
        name: compute_r2(evaluation.images[chosen], evaluation.truth[chosen])
        for name, chosen in rows.items()
        if chosen.any()
    }


def compute_r2(images: np.ndarray, truth: np.ndarray) -> float | None:
    """Returns R^2 of images [n, H, W, C] about the mean of the true ones.

    None if the true images are all alike, or an output is not finite.
    """
    wrong = np.square(images - truth, dtype=np.float64).sum()
    spread = np.square(truth - truth.mean(axis=0), dtype=np.float64).sum()
    if not spread or not np.isfinite(wrong):
        return None
    return float(1 - wrong / spread)


def draw_superposed_inputs(
    model: keras.Model, splits: Splits
) -> np.ndarray | None:
    """Returns images for mean codes of ID points that share a factor (fig. 1d).

    At an OOD point (x, y), for codes g, they are f(g(x), mean g(y')) and
    f(mean g(x'), g(y)): [n_ood, F, H, W, C], NaN where no ID point shares the
    value. The mean *outputs* of these points (`tfcomp.analysis.superposition`)
    are the same for a linear f. None for a model whose image depends on more
    than the stage `code`, a code that is an index, and too large images.
    """
    decode = find_decoder(model)
    size = splits.is_ood.sum() * splits.grid.shape[1]
    if decode is None or size * math.prod(model.output_shape[1:]) > MAX_SIZE:
        return None
    grid, is_id = splits.grid, splits.is_id
    encode = tf.function(make_stage_model(model, ["code"]), autograph=False)
    codes = evaluate_in_batches(encode, grid)["code"]  # [n, code]
    images = []
    for column in grid.T:
        values, place = np.unique(column, return_inverse=True)
        means = [_mean(codes[is_id & (column == v)]) for v in values]
        drawn = evaluate_in_batches(decode, np.stack(means))["image"]
        images.append(drawn[place[splits.is_ood]])
    return np.stack(images, axis=1)


def find_decoder(model: keras.Model) -> tf.types.experimental.Callable | None:
    """Returns the function from codes [m, code] to `{"image": [m, ...]}`."""
    layers = {layer.name: layer for layer in model.layers}
    code = layers.get("code")
    if code is None or isinstance(code, FactorIndex):
        return None
    try:
        decoder = keras.Model(code.output, model.output)
    except ValueError:  # the image depends on something else, too
        return None
    return tf.function(lambda codes: {"image": decoder(codes)}, autograph=False)


def _mean(codes: np.ndarray) -> np.ndarray:
    return codes.mean(axis=0) if len(codes) else codes.sum(axis=0) * np.nan
