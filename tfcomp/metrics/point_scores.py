"""Scores images over all combinations, ID and OOD apart; users' metrics."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfcomp.config.errors import RunError, describe_plugin_error
from tfcomp.config.quiet import show_progress
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import Render
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.features import finite_or_none
from tfcomp.metrics.metric import Metric, list_registered
from tfcomp.metrics.scores import (
    average_scores,
    compute_mse_per_image,
    score_images,
)
from tfcomp.models.stages import evaluate_in_batches

# Points that are scored at once, and points of one call of the model where its
# images are not kept.
BLOCK = 1024
STREAMED_BATCH = 256
WINDOW = 11  # px, of SSIM
# In the trial before training.
TRIAL_POINTS, TRIAL_UNITS = 64, 5

# From factors [n, F] to {"image": [n, H, W, C]}.
Draw = Callable[[tf.Tensor], dict[str, tf.Tensor]]


@dataclass(frozen=True)
class Evaluation:
    """Outputs and truth over the grid [n, H, W, C], and scores of subsets."""

    images: np.ndarray
    truth: np.ndarray
    scores: dict[str, dict[str, float | None]]

    @property
    def tagged(self) -> dict[str, float | None]:
        """Scores by their names in TensorBoard, as `ood/mse`."""
        return {
            f"{subset}/{name}": value
            for subset, values in self.scores.items()
            for name, value in values.items()
        }


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
        view = ImageView(images, truth, factors, is_ood)
        nothing = np.full(len(images), np.nan)
        for metric in list_registered("image"):
            values = _attempt(metric, view, "images")
            scores[metric.name] = nothing if values is None else values
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


def compute_mse(
    dataset: Dataset, factors: np.ndarray, images: np.ndarray, truth: np.ndarray
) -> np.ndarray:
    """Returns the MSE at points [n]: a mean over images of a combination."""
    if dataset.compare is not None:
        return dataset.compare(factors, images)[0]
    return compute_mse_per_image(images, truth)


def compute_ssim_error(images: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Returns 1 - SSIM, [n], of images [n, H, W, C]; NaN if not finite."""
    blocks = [slice(k, k + BLOCK) for k in range(0, len(images), BLOCK)]
    parts = [tf.image.ssim(images[b], truth[b], 1.0).numpy() for b in blocks]
    return 1.0 - np.concatenate(parts, dtype=np.float64)


def compute_error_ratio(dataset: Dataset, evaluation: Evaluation) -> np.ndarray:
    """Returns MSE over the MSE of `Dataset.reference` at grid points, [n]."""
    truth, points = evaluation.truth, dataset.splits.grid
    blank = np.broadcast_to(dataset.reference, truth.shape)
    error = compute_mse(dataset, points, evaluation.images, truth)
    return divide(error, compute_mse(dataset, points, blank, truth))


def divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divides values; 0 / 0 is 0, and another value over 0 is infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(values == 0, 0.0, values / by)


@dataclass(frozen=True)
class StageView:
    """The argument of a metric of stages: one stage over the grid."""

    name: str
    activations: np.ndarray  # [n, units], float32
    factors: np.ndarray  # values, [n, factors]
    is_ood: np.ndarray  # which points are held out, [n]


@dataclass(frozen=True)
class ImageView:
    """The argument of a metric of images: some points of the grid."""

    images: np.ndarray  # outputs of the model, [n, rows, columns, channels]
    truth: np.ndarray  # of the same shape
    factors: np.ndarray  # values, [n, factors]
    is_ood: np.ndarray  # which points are held out, [n]


def compute_stage_metrics(
    read_stages: Callable[[], Iterable[tuple[str, np.ndarray]]],
    factors: np.ndarray,
    is_ood: np.ndarray,
) -> dict[str, dict[str, float | None]]:
    """Computes the registered metrics of every stage; None where one fails."""
    metrics = list_registered("stage")
    numbers = {}
    for name, activations in read_stages() if metrics else ():
        view = StageView(name, activations, factors, is_ood)
        found = {m.name: _attempt(m, view, name) for m in metrics}
        numbers[name] = {n: finite_or_none(value) for n, value in found.items()}
    return numbers


def try_metrics(dataset: Dataset) -> None:
    """Calls the registered metrics on true images and random stages."""
    of_stages, of_images = list_registered("stage"), list_registered("image")
    if not of_stages and not of_images:
        return
    splits = dataset.splits
    subsets = map(np.flatnonzero, (splits.is_id, splits.is_ood))
    chosen = [part[choose_rows(len(part), TRIAL_POINTS)] for part in subsets]
    rows = np.concatenate(chosen)
    points = splits.grid[rows], splits.is_ood[rows]
    shape = len(rows), TRIAL_UNITS
    units = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    truth = dataset.render_array(points[0])
    for metric in of_stages:
        _compute(metric, StageView("stage_0", units, *points))
    for metric in of_images:
        _compute(metric, ImageView(truth, truth, *points))


def _compute(metric: Metric, view: StageView | ImageView) -> Any:
    """Calls a metric; a number (or None) of a stage, or [n] of images."""
    name = f"the measure {metric.name!r}"
    assert metric.function is not None
    try:
        value = metric.function(view)
    except Exception as error:
        raise RunError(f"{name}: {describe_plugin_error(error)}") from error
    rule, shape = "must return one number", ()
    if isinstance(view, ImageView):
        rule = f"must return a number for each of {len(view.images)} images"
        shape = view.images.shape[:1]
    elif value is None:
        return None
    try:
        values = np.asarray(value, float)
    except Exception as error:
        kind = type(value).__name__
        raise RunError(f"{name}: must return numbers, got {kind}") from error
    if values.shape != shape:
        got = f"got numbers {list(values.shape)}"
        raise RunError(f"{name}: {rule}, {got}")
    return values if shape else float(values)


def _attempt(metric: Metric, view: StageView | ImageView, place: str) -> Any:
    low, high = metric.limits.low, metric.limits.high
    note, name, value = "", f"the measure {metric.name!r}", None
    try:
        value = _compute(metric, view)
    except RunError as error:
        note = f"{error}; it has no value there"
    found = np.array([] if value is None else value)
    if not np.isfinite(found).all():
        note = f"{name} is not finite, and has no value there"
    elif ((found < low) | (found > high)).any():
        note = f"{name} leaves its range [{low:g}, {high:g}]"
    if note:
        print(f"note: {place}: {note}", file=sys.stderr)
    return value
