"""Lists all metrics, of the modules here and of users, and records them.

A new metric is one decorated function in a module of `list_shipped`. Neither
these modules nor this one import TensorFlow.
"""

import contextlib
import dataclasses
import functools
import importlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from tfcomp.config.plugins import locate
from tfcomp.metrics.metric import (
    REGISTERED,
    Better,
    Chart,
    Metric,
    Of,
    list_declared,
)
from tfcomp.statistics.limits import REAL, Limits
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import METRICS_FILE, find_metrics, read_metrics

# The entry of `metrics.json` that describes the metrics of users.
USER_METRICS = "own_measures"
# Entries of the files of a run that are no metrics.
RESERVED = ("stages", "start", "version", "name", "run", "stage")
# Modules with declared metrics, in the order in which these are shown.
MODULES = (
    "scores geometry probes distances sharing schmidt kernels interpolation "
    "embeddings tuning similarity manifolds"
).split()
Function = TypeVar("Function", bound=Callable[..., Any])

unregister_all = REGISTERED.clear


@functools.cache
def list_shipped() -> dict[str, Metric]:
    """Returns the metrics of tfcomp by name, as they are computed and shown."""
    # These modules import SciPy, which is too slow for `--help`.
    names = [f"tfcomp.metrics.{name}" for name in MODULES]
    modules = [importlib.import_module(name) for name in names]
    return {
        metric.name: metric
        for module in modules
        for function in vars(module).values()
        if getattr(function, "__module__", "") == module.__name__
        for metric in list_declared(function)
    }


def list_metrics(*of: Of) -> list[Metric]:
    """Returns all metrics in order, or those that have values of `of`."""
    metrics = (*list_shipped().values(), *REGISTERED.values())
    return [metric for metric in metrics if not of or metric.of in of]


def list_leading(*of: Of) -> dict[str, str]:
    """Returns labels of the metrics in figures of sweeps, by name."""
    leading = {m.name: m.label for m in list_metrics(*of) if m.is_leading}
    if of != ("image",):
        return leading
    return {"id_relative_mse": "ID relative MSE"} | {
        f"ood_{name}": f"OOD {label}" for name, label in leading.items()
    }


def list_charts(section: str = "") -> dict[Chart, list[Metric]]:
    """Returns charts and the metrics that they show, in order."""
    charts: dict[Chart, list[Metric]] = {}
    for metric in list_metrics("stage", "stages"):
        if metric.chart and section in ("", metric.chart.section):
            charts.setdefault(metric.chart, []).append(metric)
    return charts


def find_metric(path: str) -> Metric | None:
    """Finds a metric by a path: `ood/mse`, `ood_mse`, `layers/code/gain`."""
    metrics = list_shipped() | REGISTERED
    last = path.rpartition("/")[2]
    if last in metrics:
        return metrics[last]
    if last.partition("_")[0] not in ("id", "ood"):
        return None
    ends = [last[at + 1 :] for at, c in enumerate(last) if c == "_"]
    named = (metrics[end] for end in ends if end in metrics)
    return next((m for m in named if m.of == "image"), None)


def find_limits(path: str) -> Limits:
    """Finds the range of a metric by its name; all numbers if unknown."""
    metric = find_metric(path)
    return metric.limits if metric else REAL


def is_measured(path: Path) -> bool:
    """Returns True if a run has the metrics of this version of the code."""
    entry = (find_metrics(path) or {}).get("measures", {})
    return entry.get("version") == compute_code_version()


def write_run_metrics(path: Path, metrics: Mapping[str, Any]) -> None:
    """Writes metrics into a run folder, with the version of the code."""
    entry = {"version": compute_code_version(), **metrics}
    content = read_metrics(path) | {"measures": entry}
    text = json.dumps(content, indent=2, allow_nan=False)
    write_text(path / METRICS_FILE, f"{text}\n")


def register_measure(
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
    """
    metric = _make_user_metric(name, per, label, range, unit, better)

    def add(function: Function) -> Function:
        text = (function.__doc__ or "").strip().split("\n\n")[0]
        about = " ".join(text.split())
        _add(dataclasses.replace(metric, function=function, about=about))
        return function

    return add


def describe_user_metrics() -> dict[str, dict[str, Any]]:
    """Describes the metrics of users as `metrics.json` records them."""
    return {
        m.name: {
            "per": m.of,
            "label": m.label,
            "range": [
                end if math.isfinite(end) else None
                for end in (m.limits.low, m.limits.high)
            ],
            "unit": m.unit,
            "better": m.better,
        }
        for m in REGISTERED.values()
    }


def adopt_metrics(recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Declares metrics that runs have recorded, without their functions."""
    for name, entry in recorded.items():
        if name not in list_shipped() | REGISTERED:
            with contextlib.suppress(TypeError, ValueError):
                _add(_make_user_metric(name, **entry))


def _make_user_metric(
    name: str, per: str, label: str, range: Any, unit: str, better: str | None
) -> Metric:
    is_word = name.isascii() and name.isidentifier() and name == name.lower()
    limits = Limits(math.nan)  # in no order
    with contextlib.suppress(TypeError, ValueError):
        low, high = range  # None in files, which have no infinity
        low = -math.inf if low is None else float(low)
        limits = Limits(low, math.inf if high is None else float(high))
    rules = {
        "its name must be small letters, digits and underscores": is_word,
        "its name must be no name of another entry": name not in RESERVED,
        f"per must be stage or image, got {per!r}": per in ("stage", "image"),
        f"better must be low, high or None, got {better!r}": (
            better in (None, "low", "high")
        ),
        f"range must be (low, high), low < high, got {range!r}": (
            limits.low < limits.high
        ),
    }
    for rule, is_valid in rules.items():
        if not is_valid:
            raise ValueError(f"the measure {name!r}: {rule}")
    metric = Metric(
        name,
        label or name,
        limits=limits,
        unit=unit,
        better=cast(Better | None, better),
        is_leading=True,
        of=cast(Of, per),
        is_user=True,
    )
    if per == "image":
        return metric
    chart = Chart(name, metric.label, metric.axis)
    return dataclasses.replace(metric, chart=chart)


def _add(metric: Metric) -> None:
    """Adds a metric of a user, unless another function has its name."""
    known = REGISTERED.get(metric.name)
    pair: Any = (known or metric).function, metric.function
    is_same = None in pair or locate(pair[0]) == locate(pair[1])
    if metric.name in list_shipped() or not is_same:
        raise ValueError(f"the measure {metric.name!r} is registered already")
    REGISTERED[metric.name] = metric
