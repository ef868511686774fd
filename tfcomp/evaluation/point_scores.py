"""Scores the images of a decoder over all combinations, ID and OOD apart."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.analysis.scores import (
    average_scores,
    compute_mse_per_image,
    score_images,
)
from tfcomp.config.quiet import show_progress
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import Render
from tfcomp.evaluation.user_metrics import ImageView, compute_image_metrics

# Points that are scored at once, and points of one call of the model where its
# images are not kept.
BLOCK = 1024
STREAMED_BATCH = 256

# From factors [n, F] to {"image": [n, H, W, C]}.
Draw = Callable[[tf.Tensor], dict[str, tf.Tensor]]


@dataclass(frozen=True)
class Evaluation:
    """Outputs and truth over the grid [n, H, W, C], and scores of subsets.

    Scores of `Splits.scored` are those of `Dataset.subsets`, and `id_<name>`,
    `ood_<name>` for every other truth.
    """

    images: np.ndarray
    truth: np.ndarray
    scores: dict[str, dict[str, float | None]]


def score_subsets(
    dataset: Dataset,
    images: np.ndarray,
    truth: np.ndarray,
    subsets: dict[str, np.ndarray],
) -> dict[str, dict[str, float | None]]:
    """Scores outputs over the grid, for each subset of its points."""
    splits = dataset.splits
    each = score_points(dataset, images, truth, splits.grid, splits.is_ood)
    return average_subsets(each, subsets, sum_truth(dataset, truth, subsets))


def score_points(
    dataset: Dataset,
    images: np.ndarray,
    truth: np.ndarray,
    factors: np.ndarray,
    is_ood: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Scores every image at points of the data, [n] by name.

    Metrics of users are included if `is_ood` says which points are held out.
    """
    scores = score_images(
        images,
        truth,
        factors if dataset.has_position else None,
        dataset.polarity,
        dataset.reference,
    )
    if dataset.compare is not None:  # several images for a combination
        blank = np.broadcast_to(dataset.reference, truth.shape)
        scores["mse"], scores["mse_sd"] = dataset.compare(factors, images)
        scores["floor_mse"], _ = dataset.compare(factors, truth)
        scores["blank_mse"], _ = dataset.compare(factors, blank)
    if is_ood is not None:
        scores |= compute_image_metrics(
            ImageView(images, truth, factors, is_ood)
        )
    return scores


def sum_truth(
    dataset: Dataset, truth: np.ndarray, subsets: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Sums true images less the reference over subsets, [H, W, C]."""
    return {
        name: np.subtract(
            truth[rows].sum(axis=0, dtype=np.float64),
            rows.sum() * np.asarray(dataset.reference),
        )
        for name, rows in subsets.items()
    }


def average_subsets(
    each: Mapping[str, np.ndarray],
    subsets: Mapping[str, np.ndarray],
    sums: Mapping[str, np.ndarray],
) -> dict[str, dict[str, float | None]]:
    """Averages scores of points, [n] by name, over subsets of the points.

    The sums are the result of `sum_truth`.
    """
    return {
        subset: average_scores(
            {name: values[rows] for name, values in each.items()},
            float(np.mean((sums[subset] / max(rows.sum(), 1)) ** 2)),
        )
        for subset, rows in subsets.items()
    }


def evaluate_images(
    dataset: Dataset, draw: Draw, images: np.ndarray | None = None
) -> Evaluation:
    """Scores all scored points; computes the images if they are not given."""
    splits = dataset.splits
    if images is None:
        images = evaluate_in_batches(draw, splits.grid)["image"]
    truth = dataset.grid_images
    subsets = dataset.subsets
    scores = _score(dataset, draw, {"image": images, "truth": truth}, subsets)
    for name, render in dataset.other_truths.items():
        named = {f"{key}_{name}": subsets[key] for key in ("id", "ood")}
        scores |= _score(dataset, draw, {"image": images}, named, render)
    return Evaluation(images, truth, scores)


def _score(
    dataset: Dataset,
    draw: Draw,
    kept: dict[str, np.ndarray],
    subsets: Mapping[str, np.ndarray],
    render: Render | None = None,
) -> dict[str, dict[str, float | None]]:
    """Scores subsets of the scored points, in blocks.

    `kept` has the `image` and `truth` over the grid.
    """
    scored = dataset.splits.scored
    blocks = range(0, len(scored.factors), BLOCK)
    starts: Iterable[int] = blocks
    if dataset.splits.is_streamed:
        kept = {}
        starts = show_progress(blocks, "scores", "block", len(blocks))
    parts = []
    sums = {name: np.zeros(dataset.image_shape) for name in subsets}
    for start in starts:
        rows = slice(start, start + BLOCK)
        points = scored.factors[rows], scored.is_ood[rows]
        known = {name: images[rows] for name, images in kept.items()}
        if "image" not in known:
            known |= evaluate_in_batches(draw, points[0], STREAMED_BATCH)
        if "truth" not in known:
            known["truth"] = dataset.render_array(points[0], render)
        pair = known["image"], known["truth"]
        parts.append(score_points(dataset, *pair, *points))
        chosen = {name: is_in[rows] for name, is_in in subsets.items()}
        for name, total in sum_truth(dataset, pair[1], chosen).items():
            sums[name] += total
    each = {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }
    return average_subsets(each, subsets, sums)


def compute_error_ratio(dataset: Dataset, evaluation: Evaluation) -> np.ndarray:
    """Returns MSE over the MSE of `Dataset.reference` at every grid point, [n].

    `relative_mse` is something else, the ratio of the two means over points.
    """
    truth = evaluation.truth
    blank = np.broadcast_to(dataset.reference, truth.shape)
    error = compute_mse_per_image(evaluation.images, truth)
    return error / compute_mse_per_image(blank, truth)
