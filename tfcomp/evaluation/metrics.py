"""Lists all metrics: of the modules here, and of users.

A new metric is one decorated function in one of the modules of `list_shipped`.
Nothing here imports TensorFlow, and neither do these modules.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from tfcomp.statistics.limits import REAL, Limits
from tfcomp.statistics.metric import (
    REGISTERED,
    Better,
    Chart,
    Metric,
    Of,
    list_declared,
)

# The entry of `metrics.json` that describes the metrics of users.
USER_METRICS = "own_measures"
# Entries of the files of a run that are no metrics.
RESERVED = ("stages", "start", "version", "name")
Function = TypeVar("Function", bound=Callable[..., Any])

unregister_all = REGISTERED.clear


@functools.cache
def list_shipped() -> dict[str, Metric]:
    """Returns the metrics of tfcomp by name, as they are computed and shown.

    The modules that declare them import SciPy, which is too slow for `--help`.
    """
    from tfcomp.analysis import geometry, probes, scores
    from tfcomp.evaluation import geometry_metrics, image_metrics, stage_metrics

    computed = (image_metrics, geometry_metrics, stage_metrics)
    return {
        metric.name: metric
        for module in (scores, geometry, probes, *computed)
        for function in vars(module).values()
        if getattr(function, "__module__", "") == module.__name__
        for metric in list_declared(function)
    }


def list_metrics(*of: Of) -> list[Metric]:
    """Returns all metrics in order, or those that have values of `of`."""
    metrics = (*list_shipped().values(), *REGISTERED.values())
    return [metric for metric in metrics if not of or metric.of in of]


def list_leading(*of: Of) -> dict[str, str]:
    """Returns the metrics that figures of sweeps show, labels by name.

    For images these are OOD scores, after the ID error.
    """
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
    """Finds a metric by its name; None if there is none.

    A part of a run may stand before the name: `ood/mse` and `ood_mse`,
    `layers/stage_0/factorization`.
    """
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
    """Declares metrics that runs have recorded, without their functions.

    Known metrics stay as they are; invalid entries are skipped.
    """
    for name, entry in recorded.items():
        if name in list_shipped() or name in REGISTERED:
            continue
        with contextlib.suppress(KeyError, TypeError, ValueError):
            low, high = entry["range"]
            low = -math.inf if low is None else low
            limits = low, math.inf if high is None else high
            texts = entry["unit"], entry["better"]
            shown = entry["per"], entry["label"], limits, *texts
            _add(_make_user_metric(name, *shown))


def _make_user_metric(
    name: str,
    per: str,
    label: str,
    range: tuple[float, float],
    unit: str,
    better: str | None,
) -> Metric:
    is_word = name.isascii() and name.isidentifier() and name == name.lower()
    limits = Limits(math.nan)  # in no order
    with contextlib.suppress(TypeError, ValueError):
        low, high = map(float, range)
        limits = Limits(low, high)
    for is_valid, rule in (
        (is_word, "its name must be small letters, digits and underscores"),
        (name not in RESERVED, "its name must be no name of another entry"),
        (per in ("stage", "image"), f"per must be stage or image, got {per!r}"),
        (
            better in (None, "low", "high"),
            f"better must be low, high or None, got {better!r}",
        ),
        (
            limits.low < limits.high,
            f"range must be (low, high), low < high, got {range!r}",
        ),
    ):
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
    """Adds a metric of a user, unless another function has its name.

    A module that is imported again declares the same metric again, and a plugin
    declares what a run has recorded of it.
    """
    known = REGISTERED.get(metric.name)
    is_same = known is None or (
        None in (known.function, metric.function)
        or _locate(known.function) == _locate(metric.function)
    )
    if metric.name in list_shipped() or not is_same:
        raise ValueError(f"the measure {metric.name!r} is registered already")
    REGISTERED[metric.name] = metric


def _locate(function: Any) -> tuple[str, str]:
    name = getattr(function, "__qualname__", repr(function))
    return getattr(function, "__module__", ""), name
