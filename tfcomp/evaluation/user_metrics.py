"""Computes the metrics that users have registered."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcomp.analysis.features import finite_or_none
from tfcomp.config.errors import RunError, describe_plugin_error
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import choose_rows
from tfcomp.statistics.metric import Metric, list_registered

# In the trial before training.
TRIAL_POINTS, TRIAL_UNITS = 64, 5


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


def compute_image_metrics(view: ImageView) -> dict[str, np.ndarray]:
    """Computes the registered metrics of every image, [n]; NaN if one fails."""
    nothing = np.full(len(view.images), np.nan)
    numbers = {}
    for m in list_registered("image"):
        values = _attempt(m, view, "images")
        numbers[m.name] = nothing if values is None else values
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
        text = describe_plugin_error(error)
        raise RunError(f"{name}: {text}") from error
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
