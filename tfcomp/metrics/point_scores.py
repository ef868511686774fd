"""Scores images over all combinations, ID and OOD apart; users' metrics."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy import ndarray as Array

from tfcomp.config.errors import RunError, describe_plugin_error
from tfcomp.config.process import show_progress
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import Render
from tfcomp.datasets.splits import choose_rows
from tfcomp.metrics.registry import (
    Arrays,
    Metric,
    Scores,
    finite_or_none,
    list_registered,
)
from tfcomp.metrics.scores import average_scores, compute_mse, score_images
from tfcomp.models.stages import evaluate_in_batches

# Points that are scored at once, and points of one call of the model where its
# images are not kept.
BLOCK = 1024
STREAMED_BATCH = 256
WINDOW = 11  # px, of SSIM
# In the trial before training.
TRIAL_POINTS, TRIAL_UNITS = 64, 5

# From factors [n, F] to {"image": [n, H, W, C]}.
Predict = Callable[[tf.Tensor], dict[str, tf.Tensor]]


@dataclass(frozen=True)
class Evaluation:
    """Outputs and truth over the grid [n, H, W, C], and scores of subsets."""

    images: Array
    truth: Array
    scores: dict[str, Scores]

    @property
    def tagged(self) -> Scores:
        """Scores by their names in TensorBoard, as `ood/mse`."""
        tagged = {}
        for subset, values in self.scores.items():
            for name, value in values.items():
                tagged[f"{subset}/{name}"] = value
        return tagged


@dataclass(frozen=True)
class StageView:
    """The argument of a metric of stages: one stage over the grid."""

    name: str
    activations: Array  # [n, units], float32
    factors: Array  # values, [n, factors]
    is_ood: Array  # which points are held out, [n]


@dataclass(frozen=True)
class ImageView:
    """The argument of a metric of images: some points of the grid."""

    images: Array  # outputs of the model, [n, rows, columns, channels]
    truth: Array  # of the same shape
    factors: Array  # values, [n, factors]
    is_ood: Array  # which points are held out, [n]


def score_points(
    dataset: Dataset,
    images: Array,
    truth: Array,
    factors: Array,
    is_ood: Array,
) -> Arrays:
    """Scores images at points, [n] by name.

    Args:
        dataset: Has the reference image.
        images: Outputs of a model, [n, H, W, C].
        truth: True images, [n, H, W, C].
        factors: The points, [n, F].
        is_ood: Which are held out, [n].
    """
    positions = None
    if dataset.has_position:
        positions = factors
    scores = score_images(
        images,
        truth,
        positions=positions,
        polarity=dataset.polarity,
        reference=dataset.reference,
    )
    compare = dataset.compare
    if compare is not None:  # several images for a combination
        blank = np.broadcast_to(dataset.reference, truth.shape)
        error, deviation = compare(factors, images)
        floor, _ = compare(factors, truth)
        blank_error, _ = compare(factors, blank)
        scores["mse"] = error
        scores["mse_sd"] = deviation
        scores["floor_mse"] = floor
        scores["blank_mse"] = blank_error

    view = ImageView(
        images=images,
        truth=truth,
        factors=factors,
        is_ood=is_ood,
    )
    return scores | _compute_image_metrics(view)


def _compute_image_metrics(view: ImageView) -> Arrays:
    """Computes the registered metrics of images, [n]; NaN where one fails."""
    num_points = len(view.images)
    scores = {}
    for metric in list_registered("image"):
        values = _attempt(metric, view, "images")
        if values is None:
            values = np.full(num_points, np.nan)
        scores[metric.name] = values
    return scores


def evaluate_images(
    dataset: Dataset,
    predict: Predict,
    images: Array | None = None,
) -> Evaluation:
    """Scores all scored points.

    Args:
        dataset: Has the points and true images.
        predict: The model.
        images: Its images over the grid, [n, H, W, C], if known.
    """
    splits = dataset.splits
    if images is None:
        images = evaluate_in_batches(predict, splits.grid)["image"]
    truth = dataset.grid_images

    # A streamed split scores more points than the grid has.
    grid_images: Array | None = images
    grid_truth: Array | None = truth
    if splits.is_streamed:
        grid_images = None
        grid_truth = None
    subsets = dataset.subsets
    scores = _score_subsets(
        dataset,
        predict,
        subsets,
        grid_images,
        grid_truth,
    )
    for name, render in dataset.other_truths.items():
        named = {}
        for key in ("id", "ood"):
            named[f"{key}_{name}"] = subsets[key]
        scores |= _score_subsets(
            dataset,
            predict,
            named,
            grid_images,
            render=render,
        )
    return Evaluation(images, truth, scores)


def _score_subsets(
    dataset: Dataset,
    predict: Predict,
    subsets: Mapping[str, Array],
    images: Array | None = None,
    truth: Array | None = None,
    render: Render | None = None,
) -> dict[str, Scores]:
    """Scores the points of a split, block by block, and averages.

    Args:
        dataset: Has the scored points.
        predict: The model.
        subsets: Masks of scored points by name.
        images: Outputs at all scored points; None computes them.
        truth: True images at all scored points; None renders them.
        render: Renders other true images.

    Returns:
        Means by subset and name.
    """
    scored = dataset.splits.scored
    reference = np.asarray(dataset.reference)
    blocks = []
    sums = {}
    for name in subsets:
        sums[name] = np.zeros(dataset.image_shape)
    for start in _list_starts(dataset):
        rows = slice(start, start + BLOCK)
        points = scored.factors[rows]
        if images is None:
            batches = evaluate_in_batches(
                predict,
                points,
                batch_size=STREAMED_BATCH,
            )
            outputs = batches["image"]
        else:
            outputs = images[rows]
        if truth is None:
            targets = dataset.render_array(points, render)
        else:
            targets = truth[rows]

        is_ood = scored.is_ood[rows]
        block = score_points(dataset, outputs, targets, points, is_ood)
        blocks.append(block)
        for name, mask in subsets.items():
            sums[name] += _sum_contrast(targets, mask[rows], reference)

    each = _join_blocks(blocks)
    scores = {}
    for name, mask in subsets.items():
        scores[name] = _average(each, mask, sums[name])
    return scores


def _sum_contrast(images: Array, is_in: Array, reference: Array) -> Array:
    """Sums images of a subset, less the reference, [H, W, C].

    Args:
        images: True images, [n, H, W, C].
        is_in: Which are in the subset, [n].
        reference: The reference.
    """
    subset = images[is_in]
    total = subset.sum(axis=0, dtype=np.float64)
    ground = is_in.sum() * reference
    return total - ground


def _join_blocks(blocks: Sequence[Arrays]) -> Arrays:
    """Joins the scores of blocks of points, [n] by name."""
    joined = {}
    for name in blocks[0]:
        values = [block[name] for block in blocks]
        joined[name] = np.concatenate(values)
    return joined


def _list_starts(dataset: Dataset) -> Iterable[int]:
    """Lists the first rows of blocks; with a progress bar if they take long."""
    num_points = len(dataset.splits.scored.factors)
    starts = range(0, num_points, BLOCK)
    if not dataset.splits.is_streamed:
        return starts
    num_blocks = len(starts)
    return show_progress(
        starts,
        "scores",
        "block",
        num_blocks,
    )


def _average(each: Mapping[str, Array], mask: Array, total: Array) -> Scores:
    """Averages scores over a subset of points.

    Args:
        each: Scores of all points by name, [n].
        mask: The points of the subset, [n].
        total: Sum of its true images, less the reference, [H, W, C].
    """
    count = max(mask.sum(), 1)
    mean = total / count
    offset = np.mean(mean**2)
    subset_scores = {}
    for name, values in each.items():
        subset_scores[name] = values[mask]
    return average_scores(subset_scores, offset=float(offset))


def compute_ssim_error(images: Array, truth: Array) -> Array:
    """Computes 1 - SSIM, [n]; NaN if not finite.

    Args:
        images: Outputs, [n, H, W, C], in units where 1 is the range.
        truth: True images, [n, H, W, C].
    """
    parts = []
    num_images = len(images)
    for start in range(0, num_images, BLOCK):
        block = slice(start, start + BLOCK)
        similarity = tf.image.ssim(
            images[block],
            truth[block],
            max_val=1.0,
        )
        parts.append(similarity.numpy())

    similarities = np.concatenate(parts, dtype=np.float64)
    return 1.0 - similarities


def compute_error_ratio(dataset: Dataset, evaluation: Evaluation) -> Array:
    """Divides MSE by the MSE of `Dataset.reference`, at grid points, [n].

    Args:
        dataset: Has the reference.
        evaluation: Outputs and truth over its grid.
    """
    points = dataset.splits.grid
    truth = evaluation.truth
    images = evaluation.images
    reference = np.broadcast_to(dataset.reference, truth.shape)
    error = compute_mse(
        dataset,
        points,
        images,
        truth,
    )
    blank = compute_mse(
        dataset,
        points,
        reference,
        truth,
    )
    return divide(error, blank)


def divide(values: Array, by: Array) -> Array:
    """Divides values; 0 / 0 is 0, and another value over 0 is infinite.

    Args:
        values: The numbers above the line.
        by: The numbers below it, of the same shape.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        is_zero = values == 0
        ratio = values / by
        return np.where(is_zero, 0.0, ratio)


def compute_stage_metrics(
    read_stages: Callable[[], Iterable[tuple[str, Array]]],
    factors: Array,
    is_ood: Array,
) -> dict[str, Scores]:
    """Computes the registered metrics of every stage; None where one fails.

    Args:
        read_stages: Yields stages and their activations, [n, units].
        factors: The points, [n, F].
        is_ood: Which are held out, [n].
    """
    metrics = list_registered("stage")
    if not metrics:
        return {}

    numbers = {}
    for stage, activations in read_stages():
        view = StageView(
            name=stage,
            activations=activations,
            factors=factors,
            is_ood=is_ood,
        )
        scores = {}
        for metric in metrics:
            value = _attempt(metric, view, stage)
            scores[metric.name] = finite_or_none(value)
        numbers[stage] = scores
    return numbers


def try_metrics(dataset: Dataset) -> None:
    """Calls the registered metrics on true images and random stages.

    Raises:
        RunError: If one of them fails.
    """
    stage_metrics = list_registered("stage")
    image_metrics = list_registered("image")
    if not stage_metrics and not image_metrics:
        return

    splits = dataset.splits
    samples = []
    for mask in (splits.is_id, splits.is_ood):
        subset = np.flatnonzero(mask)
        sample = choose_rows(len(subset), TRIAL_POINTS)
        samples.append(subset[sample])
    rows = np.concatenate(samples)
    points = splits.grid[rows]
    is_ood = splits.is_ood[rows]

    rng = np.random.default_rng(0)
    size = (len(rows), TRIAL_UNITS)
    units = rng.normal(size=size)
    units = units.astype(np.float32)
    stage_view = StageView(
        name="stage_0",
        activations=units,
        factors=points,
        is_ood=is_ood,
    )
    for metric in stage_metrics:
        _compute(metric, stage_view)
    truth = dataset.render_array(points)
    image_view = ImageView(
        images=truth,
        truth=truth,
        factors=points,
        is_ood=is_ood,
    )
    for metric in image_metrics:
        _compute(metric, image_view)


def _compute(metric: Metric, view: StageView | ImageView) -> Any:
    """Calls a metric of a user.

    Args:
        metric: The metric.
        view: Its argument.

    Returns:
        A number (or None) of a stage, or [n] of images.

    Raises:
        RunError: If it fails, or returns something else.
    """
    name = f"the metric {metric.name!r}"
    assert metric.function is not None
    try:
        value = metric.function(view)
    except Exception as error:
        raise RunError(f"{name}: {describe_plugin_error(error)}") from error

    shape: tuple[int, ...] = ()
    rule = "must return one number"
    if isinstance(view, ImageView):
        shape = view.images.shape[:1]
        rule = f"must return a number for each of {len(view.images)} images"
    elif value is None:
        return None
    try:
        values = np.asarray(value, float)
    except Exception as error:
        kind = type(value).__name__
        raise RunError(f"{name}: must return numbers, got {kind}") from error
    if values.shape != shape:
        sizes = list(values.shape)
        raise RunError(f"{name}: {rule}, got numbers {sizes}")
    if not shape:
        return float(values)
    return values


def _attempt(metric: Metric, view: StageView | ImageView, place: str) -> Any:
    """Calls a metric of a user; prints a note and goes on if it fails.

    Args:
        metric: The metric.
        view: Its argument.
        place: The stage, or `images`.
    """
    low = metric.limits.low
    high = metric.limits.high
    try:
        value = _compute(metric, view)
    except RunError as error:
        print(f"note: {place}: {error}; it has no value there", file=sys.stderr)
        return None

    values = np.array([])
    if value is not None:
        values = np.array(value)
    is_outside = (values < low) | (values > high)
    name = f"the metric {metric.name!r}"
    note = ""
    if not np.isfinite(values).all():
        note = f"{name} is not finite, and has no value there"
    elif is_outside.any():
        note = f"{name} leaves its range [{low:g}, {high:g}]"
    if note:
        print(f"note: {place}: {note}", file=sys.stderr)
    return value
