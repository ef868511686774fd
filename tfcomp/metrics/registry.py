"""Declares metrics at the functions that compute them, lists and records them.

A new metric is one file: a module in the folder `tfcomp/metrics`, say
`worst_error.py`, with a function below its declaration.

    @computes("run", POSITIVE, better="low", worst_error="worst error: ...")
    def measure_worst_error(analysis: RunAnalysis) -> Scores:
        return {"worst_error": finite_or_none(analysis.error.max())}

`registry.list_shipped` finds the module. From the declaration follow the files
of a run, charts in TensorBoard, lines of the report, figures and intervals of
sweeps and `tfcomp compare`; docs/reference.md defines it in words. What the
function is given and returns depends on the first argument:

    run      a `RunAnalysis`; numbers by name
    stages   a `RunAnalysis`; numbers by stage and name
    stage    metric tensors or activations of one stage; its numbers by name
    image    images and true images; a value for each by name

`stage` and `image` are computed during training (`summarize_geometry`,
`probe_rows`, `score_images`), the others by `tfcomp analyze --measure`. The
module must not import TensorFlow, and SciPy only as `import scipy`. For a
metric outside of tfcomp, use `tfcomp.register_metric`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import math
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import RunError, describe_plugin_error
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.plugins import locate
from tfcomp.datasets.splits import choose_rows
from tfcomp.statistics.limits import REAL, Limits
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import METRICS_FILE, find_metrics, read_metrics

if TYPE_CHECKING:
    from tfcomp.datasets.dataset import Dataset

Of = Literal["image", "stage", "stages", "run"]
Better = Literal["low", "high"]
Function = TypeVar("Function", bound=Callable[..., Any])
# What metrics return: None is a number that does not exist.
Scores = dict[str, float | None]  # by name
Rows = dict[str, Scores]  # by stage
Arrays = dict[str, Array]  # by stage, or by another name

# The entry of `metrics.json` that describes the metrics of users.
USER_METRICS = "own_measures"
# Entries of the files of a run that are no metrics.
RESERVED = ("stages", "start", "version", "name", "run", "stage")
# Modules of this package that import TensorFlow, and declare no metrics.
WITH_TENSORFLOW = {
    "embeddings",
    "interaction",
    "inversion",
    "jacobians",
    "output_analysis",
    "run_analysis",
}
# As in the table at the end of a training.
SUBSET_WORDS = {
    "id": "trained",
    "ood": "held out",
}
# Metrics of these modules are shown first.
FIRST = ["scores", "geometry", "probes"]
# Points of ID and of OOD, and units, of the trial before training.
TRIAL_POINTS = 64
TRIAL_UNITS = 5


@dataclass(frozen=True)
class Chart:
    """A figure of stages by several metrics; its axis may depend on factors."""

    name: str
    title: str
    axis: str
    text: str = ""
    section: Literal["layers", "interactions"] = "layers"


@dataclass(frozen=True)
class Metric:
    """A number that describes a network."""

    name: str  # in files and tables
    label: str  # in figures
    about: str = ""  # a sentence that defines it; empty if no page shows it
    limits: Limits = REAL
    unit: str = ""  # as `px`
    better: Better | None = None
    chart: Chart | None = None  # the figure that compares stages by it
    is_leading: bool = False  # figures of sweeps show it
    of: Of = "run"
    function: Callable[..., Any] | None = None  # None if it is not imported

    @property
    def axis(self) -> str:
        """The label with the unit, for an axis."""
        if not self.unit:
            return self.label
        return f"{self.label} ({self.unit})"


def computes(
    of: Of,
    limits: Limits = REAL,
    names: str = "",
    *,
    better: Better | None = None,
    chart: Chart | None = None,
    unit: str = "",
    is_leading: bool = False,
    **texts: str,
) -> Callable[[Function], Function]:
    """Declares metrics of a function that returns them by name.

    Several declarations of one function stand above each other.

    Args:
        of: What the function is given (see the module).
        limits: Range of the numbers; intervals stay inside.
        names: Names of metrics that no page shows, separated by spaces.
        better: `low` or `high`, if one of them is better.
        chart: The figure that compares stages by them.
        unit: Of the numbers, as `px`.
        is_leading: True to show them in figures of sweeps.
        **texts: By name `<label>: <definition>` of metrics that pages show.
    """

    def declare(function: Function) -> Function:
        """Adds the metrics to those that the function has."""
        shortened = dict.fromkeys(names.split(), "")
        definitions = shortened | texts
        metrics = []
        for name, text in definitions.items():
            label, _, about = text.partition(": ")
            if not label:
                label = name.replace("_", " ")
            metric = Metric(
                name=name,
                label=label,
                about=about,
                limits=limits,
                unit=unit,
                better=better,
                chart=chart,
                is_leading=is_leading,
                of=of,
                function=function,
            )
            metrics.append(metric)
        # The uppermost declaration comes first.
        metrics += list_declared(function)
        vars(function)["metrics"] = metrics
        return function

    return declare


def list_declared(function: object) -> list[Metric]:
    """Lists the metrics that `computes` has declared, in order."""
    declared = getattr(function, "metrics", ())
    return list(declared)


# Metrics that users have registered (`tfcomp.register_metric`), by name.
REGISTERED: dict[str, Metric] = {}
unregister_all = REGISTERED.clear


def list_registered(of: Of) -> list[Metric]:
    """Lists the metrics of users that can be computed in this process."""
    metrics = []
    for metric in REGISTERED.values():
        if metric.function and metric.of == of:
            metrics.append(metric)
    return metrics


@functools.cache
def list_shipped() -> dict[str, Metric]:
    """Lists the metrics of tfcomp by name, in the order of pages."""
    folder = str(Path(__file__).parent)
    modules = pkgutil.iter_modules([folder])
    names = {module.name for module in modules}
    others = names.difference(FIRST, WITH_TENSORFLOW)
    metrics = {}
    for name in FIRST + sorted(others):
        # It imports SciPy, which is too slow for `--help`.
        module = importlib.import_module(f"tfcomp.metrics.{name}")
        for function in vars(module).values():
            defined_in = getattr(function, "__module__", "")
            if defined_in != module.__name__:
                continue
            for metric in list_declared(function):
                metrics[metric.name] = metric
    return metrics


def list_metrics(*of: Of) -> list[Metric]:
    """Lists all metrics in order, or those that have values of `of`."""
    metrics = list_shipped() | REGISTERED
    return [m for m in metrics.values() if not of or m.of in of]


def label_number(name: str) -> str:
    """Returns the label of a number in tables of runs, for an axis.

    Args:
        name: As `ood/relative_mse`, which becomes `relative MSE, held out`.
            Names of numbers that nobody declared stay as they are.
    """
    subset, _, metric_name = name.rpartition("/")
    metrics = list_shipped() | REGISTERED
    metric = metrics.get(metric_name)
    if metric is None:
        return name
    words = SUBSET_WORDS.get(subset, subset)
    return ", ".join(filter(None, [metric.axis, words]))


def list_leading(*of: Of) -> list[str]:
    """Lists the metrics in figures of sweeps, as `ood_mse` those of images."""
    leading = [m.name for m in list_metrics(*of) if m.is_leading]
    if of != ("image",):
        return leading
    return ["id_relative_mse", *[f"ood_{name}" for name in leading]]


def list_charts(section: str = "") -> dict[Chart, list[Metric]]:
    """Lists charts and the metrics that they show, in order.

    Args:
        section: Of the report; by default all.
    """
    charts: dict[Chart, list[Metric]] = {}
    for metric in list_metrics("stage", "stages"):
        chart = metric.chart
        if chart is None:
            continue
        if section in ("", chart.section):
            charts.setdefault(chart, []).append(metric)
    return charts


def find_metric(path: str) -> Metric | None:
    """Finds a metric by a path: `ood/mse`, `ood_mse`, `layers/code/gain`."""
    metrics = list_shipped() | REGISTERED
    last = path.rpartition("/")[2]
    if last in metrics:
        return metrics[last]

    # A part of a run may have several words, as in `ood_new_mse`.
    words = last.split("_")
    if words[0] not in ("id", "ood"):
        return None
    for number in range(1, len(words)):
        name = "_".join(words[number:])
        metric = metrics.get(name)
        if metric is not None and metric.of == "image":
            return metric
    return None


def find_limits(path: str) -> Limits:
    """Finds the range of a metric by its name; all numbers if unknown."""
    metric = find_metric(path)
    if metric is None:
        return REAL
    return metric.limits


def is_measured(path: Path) -> bool:
    """Returns True if a run has the metrics of this version of the code."""
    content = find_metrics(path) or {}
    entry = content.get("measures", {})
    return entry.get("version") == compute_code_version()


def write_run_metrics(path: Path, metrics: Mapping[str, Any]) -> None:
    """Writes metrics into a run folder, with the version of the code.

    Args:
        path: The folder.
        metrics: By `compute_metrics`.
    """
    content = read_metrics(path)
    content["measures"] = {
        "version": compute_code_version(),
        **metrics,
    }
    text = json.dumps(
        content,
        indent=2,
        allow_nan=False,
    )
    write_text(path / METRICS_FILE, f"{text}\n")


def register_metric(
    name: str,
    *,
    per: str = "stage",
    label: str = "",
    range: tuple[float, float] = (-math.inf, math.inf),
    unit: str = "",
    better: str | None = None,
) -> Callable[[Function], Function]:
    """Registers a metric of your own; a decorator of the function.

    A function of a stage takes one object with `activations` [n, units],
    `factors` [n, factors] and `is_ood` [n], and returns a number, or None if
    there is none. Runs have it as `layers.<stage>.<name>`. A function of images
    takes one object with `images` and `truth` [n, rows, columns, channels],
    `factors` and `is_ood`, and returns a number for each image, [n], which
    depends on that image alone: images come in batches. Runs have the means
    over ID and OOD as `id.<name>` and `ood.<name>`.

    Args:
        name: In files and tables: small letters, digits and underscores.
        per: `stage` or `image`.
        label: In figures; by default the name.
        range: Least and largest possible value; intervals stay inside.
        unit: Of the number, as `px`.
        better: `low` or `high`, if one of them is better.

    Raises:
        ValueError: If the name is taken, or an argument is invalid.

    Example:
        The share of units that are silent at all points:

        >>> @tfcomp.register_metric("silent", range=(0, 1))
        ... def measure_silent(stage):
        ...     return (stage.activations == 0).all(axis=0).mean()
    """
    metric = _make_user_metric(
        name,
        per=per,
        label=label,
        range=range,
        unit=unit,
        better=better,
    )

    def register(function: Function) -> Function:
        """Adds the metric, with the docstring as its definition."""
        docstring = function.__doc__ or ""
        paragraphs = docstring.strip().split("\n\n")
        words = paragraphs[0].split()
        defined = dataclasses.replace(
            metric,
            function=function,
            about=" ".join(words),
        )
        _add(defined)
        return function

    return register


# The name up to tfcomp 0.4; it goes with the next release.
register_measure = register_metric


def describe_user_metrics() -> dict[str, dict[str, Any]]:
    """Describes the metrics of users as `metrics.json` records them."""
    entries = {}
    for metric in REGISTERED.values():
        low = finite_or_none(metric.limits.low)  # JSON has no infinity
        high = finite_or_none(metric.limits.high)
        entries[metric.name] = {
            "per": metric.of,
            "label": metric.label,
            "range": [low, high],
            "unit": metric.unit,
            "better": metric.better,
        }
    return entries


def adopt_metrics(recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Declares metrics that runs have recorded, without their functions."""
    shipped = list_shipped()
    for name, entry in recorded.items():
        if name in shipped or name in REGISTERED:
            continue
        with contextlib.suppress(TypeError, ValueError):
            metric = _make_user_metric(name, **entry)
            _add(metric)


def _make_user_metric(
    name: str,
    per: str,
    label: str,
    range: Any,
    unit: str,
    better: str | None,
) -> Metric:
    """Makes a metric without a function; arguments as in `register_metric`.

    Raises:
        ValueError: If an argument is invalid.
    """
    limits = _parse_range(range)
    rule = ""
    if not re.fullmatch("[a-z_][a-z0-9_]*", name):
        rule = "its name must be small letters, digits and underscores"
    elif name in RESERVED:
        rule = "its name must be no name of another entry"
    elif per not in ("stage", "image"):
        rule = f"per must be stage or image, got {per!r}"
    elif better not in (None, "low", "high"):
        rule = f"better must be low, high or None, got {better!r}"
    elif limits is None:
        rule = f"range must be (low, high), low < high, got {range!r}"
    if rule or limits is None:
        raise ValueError(f"the metric {name!r}: {rule}")

    metric = Metric(
        name=name,
        label=label or name,
        limits=limits,
        unit=unit,
        better=cast(Better | None, better),
        is_leading=True,
        of=cast(Of, per),
    )
    if per == "image":
        return metric
    chart = Chart(name, title=metric.label, axis=metric.axis)
    return dataclasses.replace(metric, chart=chart)


def _parse_range(range: Any) -> Limits | None:
    """Reads a range, in which None is infinite; None if it is invalid."""
    try:
        low, high = range
        if low is None:
            low = -math.inf
        if high is None:
            high = math.inf
        limits = Limits(float(low), float(high))
    except (TypeError, ValueError):
        return None
    if limits.low < limits.high:
        return limits
    return None


def _add(metric: Metric) -> None:
    """Adds a metric of a user.

    Raises:
        ValueError: If another function has its name.
    """
    old = REGISTERED.get(metric.name)
    is_taken = metric.name in list_shipped()
    if old is not None and old.function and metric.function:
        is_same = locate(old.function) == locate(metric.function)
        is_taken |= not is_same
    if is_taken:
        raise ValueError(f"the metric {metric.name!r} is registered already")
    REGISTERED[metric.name] = metric


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


def compute_image_metrics(view: ImageView) -> Arrays:
    """Computes the metrics of users of images, [n]; NaN where one fails."""
    scores = {}
    for metric in list_registered("image"):
        values = _attempt(metric, view, "images")
        if values is None:
            values = np.full(len(view.images), np.nan)
        scores[metric.name] = values
    return scores


def compute_stage_metrics(view: StageView) -> Scores:
    """Computes the metrics of users of a stage; None where one fails."""
    scores = {}
    for metric in list_registered("stage"):
        value = _attempt(metric, view, view.name)
        scores[metric.name] = finite_or_none(value)
    return scores


def try_metrics(dataset: Dataset) -> None:
    """Calls the metrics of users on true images and on a random stage.

    Raises:
        RunError: If one of them fails.
    """
    splits = dataset.splits
    samples = []
    for mask in splits.subsets.values():
        subset = np.flatnonzero(mask)
        sample = choose_rows(len(subset), TRIAL_POINTS)
        samples.append(subset[sample])
    rows = np.concatenate(samples)
    points = splits.grid[rows]
    is_ood = splits.is_ood[rows]

    for metric in list_registered("stage"):
        rng = np.random.default_rng(0)
        units = rng.normal(size=(len(rows), TRIAL_UNITS))
        activations = units.astype(np.float32)
        stage_view = StageView(
            "stage_0",
            activations,
            points,
            is_ood,
        )
        _compute(metric, stage_view)
    for metric in list_registered("image"):
        truth = dataset.render_array(points)
        image_view = ImageView(
            truth,
            truth,
            points,
            is_ood,
        )
        _compute(metric, image_view)


def _compute(
    metric: Metric,
    view: StageView | ImageView,
) -> Array | None:
    """Calls a metric of a user.

    Args:
        metric: The metric.
        view: Its argument.

    Returns:
        A number [] (or None) of a stage, or numbers [n] of images.

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
    return values


def _attempt(
    metric: Metric,
    view: StageView | ImageView,
    place: str,
) -> Array | None:
    """Calls a metric of a user; prints a note and goes on if it fails.

    Args:
        metric: The metric.
        view: Its argument.
        place: The stage, or `images`.
    """
    try:
        values = _compute(metric, view)
    except RunError as error:
        print(f"note: {place}: {error}; it has no value there", file=sys.stderr)
        return None
    if values is None:
        return None

    low = metric.limits.low
    high = metric.limits.high
    is_outside = (values < low) | (values > high)
    note = ""
    if not np.isfinite(values).all():
        note = "is not finite, and has no value there"
    elif is_outside.any():
        note = f"leaves its range [{low:g}, {high:g}]"
    if note:
        line = f"note: {place}: the metric {metric.name!r} {note}"
        print(line, file=sys.stderr)
    return values


def finite_or_none(value: float | Array | None) -> float | None:
    """Converts to a plain float; None for a number that does not exist."""
    if value is None or not np.isfinite(value):
        return None
    return float(value)


def make_scores(numbers: Mapping[str, Any]) -> Scores:
    """Converts numbers by name to plain floats, as `finite_or_none`."""
    return {name: finite_or_none(value) for name, value in numbers.items()}


def mean_or_none(values: Array) -> float | None:
    """Computes the mean; None without values or if one is not finite."""
    if not np.size(values):
        return None
    return finite_or_none(np.mean(values))


def median_or_none(values: Array) -> float | None:
    """Computes the median; None without values or if it is not finite."""
    if not np.size(values):
        return None
    return finite_or_none(np.median(values))


def average(values: Iterable[float | None]) -> float | None:
    """Computes the mean; None if one of the values does not exist."""
    numbers = list(values)
    return mean_or_none(np.array(numbers, float))
