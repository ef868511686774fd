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
    """Outputs and truth over the grid [n, H, W, C], and scores of subsets."""

    images: np.ndarray
    truth: np.ndarray
    scores: dict[str, dict[str, float | None]]


def score_points(
    dataset: Dataset,
    images: np.ndarray,
    truth: np.ndarray,
    factors: np.ndarray,
    is_ood: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Scores images at points [n] by name; metrics of users need `is_ood`."""
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


def evaluate_images(
    dataset: Dataset, draw: Draw, images: np.ndarray | None = None
) -> Evaluation:
    """Scores all scored points; computes the images if they are not given."""
    splits, subsets = dataset.splits, dataset.subsets
    if images is None:
        images = evaluate_in_batches(draw, splits.grid)["image"]
    truth = dataset.grid_images
    known = (None, None) if splits.is_streamed else (images, truth)
    scores = _score(dataset, draw, subsets, *known)
    for name, render in dataset.other_truths.items():
        named = {f"{key}_{name}": subsets[key] for key in ("id", "ood")}
        scores |= _score(dataset, draw, named, known[0], render=render)
    return Evaluation(images, truth, scores)


def _score(
    dataset: Dataset,
    draw: Draw,
    subsets: Mapping[str, np.ndarray],
    images: np.ndarray | None = None,
    truth: np.ndarray | None = None,
    render: Render | None = None,
) -> dict[str, dict[str, float | None]]:
    scored, parts = dataset.splits.scored, []
    starts: Iterable[int] = range(0, len(scored.factors), BLOCK)
    if dataset.splits.is_streamed:
        starts = show_progress(starts, "scores", "block", len([*starts]))
    # Of true images less the reference.
    sums = {name: np.zeros(dataset.image_shape) for name in subsets}
    for start in starts:
        rows = slice(start, start + BLOCK)
        points, is_ood = scored.factors[rows], scored.is_ood[rows]
        if images is None:
            drawn = evaluate_in_batches(draw, points, STREAMED_BATCH)["image"]
        else:
            drawn = images[rows]
        if truth is None:
            true = dataset.render_array(points, render)
        else:
            true = truth[rows]
        parts.append(score_points(dataset, drawn, true, points, is_ood))
        for name, is_in in subsets.items():
            blank = is_in[rows].sum() * np.asarray(dataset.reference)
            total = true[is_in[rows]].sum(axis=0, dtype=np.float64)
            sums[name] += total - blank
    each = {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }
    return {
        subset: average_scores(
            {name: values[rows] for name, values in each.items()},
            float(np.mean((sums[subset] / max(rows.sum(), 1)) ** 2)),
        )
        for subset, rows in subsets.items()
    }


def compute_error_ratio(dataset: Dataset, evaluation: Evaluation) -> np.ndarray:
    """Returns MSE over the MSE of `Dataset.reference` at grid points, [n]."""
    truth = evaluation.truth
    blank = np.broadcast_to(dataset.reference, truth.shape)
    error = compute_mse_per_image(evaluation.images, truth)
    return error / compute_mse_per_image(blank, truth)
