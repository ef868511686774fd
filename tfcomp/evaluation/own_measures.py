"""Measures that users have registered (`tfcomp.register_measure`), computed."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcomp.analysis.features import finite_or_none
from tfcomp.config.errors import RunError, describe_plugin_error
from tfcomp.datasets import Dataset
from tfcomp.datasets.dataset import choose_rows
from tfcomp.statistics.metric import Metric, list_own

# Of a first try.
TRIED_POINTS, TRIED_UNITS = 64, 5


@dataclass(frozen=True)
class StageView:
    """What a measure of stages is given: one stage over the grid."""

    name: str
    activations: np.ndarray  # [n, units], float32
    factors: np.ndarray  # their values, [n, factors]
    is_ood: np.ndarray  # which points are held out, [n]


@dataclass(frozen=True)
class ImageView:
    """What a measure of images is given: some points of the grid."""

    images: np.ndarray  # what the model draws, [n, rows, columns, channels]
    truth: np.ndarray  # of the same shape
    factors: np.ndarray  # their values, [n, factors]
    is_ood: np.ndarray  # which points are held out, [n]


def measure_stages(
    read: Callable[[], Iterable[tuple[str, int, Iterable[np.ndarray]]]],
    factors: np.ndarray,
    is_ood: np.ndarray,
) -> dict[str, dict[str, float | None]]:
    """The registered numbers of every stage, which `Evaluator.read_stages`
    reads if something is registered. A measure that fails has no number there,
    which is said: what else a run has computed is not lost for it."""
    measures = list_own("stage")
    if not measures:
        return {}
    found = {}
    for name, _, blocks in read():
        joined = np.concatenate(list(blocks), axis=1)
        view = StageView(name, joined, factors, is_ood)
        found[name] = {m.name: _attempt(m, view, name) for m in measures}
    return found


def measure_images(view: ImageView) -> dict[str, np.ndarray]:
    """The registered numbers of every image, [n] by name; NaN if one fails."""
    nothing = np.full(len(view.images), np.nan)
    found = {}
    for m in list_own("image"):
        values = _attempt(m, view, "images")
        found[m.name] = nothing if values is None else values
    return found


def try_measures(dataset: Dataset) -> None:
    """Calls the registered measures on a few points, before any training, with
    random numbers as stages and true images; RunError, with the measure and its
    line, if one fails or returns no numbers of the right shape."""
    if not list_own("stage") and not list_own("image"):
        return
    splits = dataset.splits
    rows = [
        np.flatnonzero(part)[choose_rows(part.sum(), TRIED_POINTS)]
        for part in (splits.is_id, splits.is_ood)
    ]
    chosen = np.concatenate(rows)
    factors, is_ood = splits.grid[chosen], splits.is_ood[chosen]
    rng = np.random.default_rng(0)
    units = rng.normal(size=(len(chosen), TRIED_UNITS)).astype(np.float32)
    truth = dataset.render_array(factors)
    stage = StageView("stage_0", units, factors, is_ood)
    images = ImageView(truth, truth, factors, is_ood)
    for measure in list_own("stage"):
        _compute(measure, stage)
    for measure in list_own("image"):
        _compute(measure, images)


def _compute(measure: Metric, view: StageView | ImageView) -> Any:
    """What a measure gives: a number of a stage, or None, or one per image.

    RunError, a line about the measure, if it fails or gives something else.
    """
    name, is_stage = (
        f"the measure {measure.name!r}",
        isinstance(view, StageView),
    )
    try:
        value = measure.function(view)
    except Exception as error:
        where = describe_plugin_error(error)
        text = where or f"{type(error).__name__}: {error}"
        raise RunError(f"{name}: {' '.join(text.split())}") from error
    if value is None and is_stage:
        return None
    try:
        values = np.asarray(value, float)
    except Exception as error:
        text = f"{name}: must return numbers, got {type(value).__name__}"
        if not isinstance(error, TypeError | ValueError):
            text = f"{text} ({' '.join(str(error).split())})"
        raise RunError(text) from error
    if values.shape != (() if is_stage else (len(view.images),)):
        rule = "must return one number"
        if not is_stage:
            rule = f"must return a number for each of {len(view.images)} images"
        got = f"got numbers {list(values.shape)}"
        raise RunError(f"{name}: {rule}, {got}")
    return float(values) if is_stage else values


def _attempt(measure: Metric, view: StageView | ImageView, place: str) -> Any:
    """What `_compute` gives; None, which is said, if it fails or is NaN."""
    try:
        value = _compute(measure, view)
    except RunError as error:
        print(f"note: {place}: {error}; it has no value there", file=sys.stderr)
        return None
    if value is None:
        return None
    limits, text = measure.limits, ""
    if not np.isfinite(value).all():
        text = "is not finite, and has no value there"
    elif np.any(value < limits.low) or np.any(value > limits.high):
        text = f"leaves its range [{limits.low:g}, {limits.high:g}]"
    if text:
        note = f"note: {place}: the measure {measure.name!r} {text}"
        print(note, file=sys.stderr)
    return finite_or_none(value) if np.ndim(value) == 0 else value
