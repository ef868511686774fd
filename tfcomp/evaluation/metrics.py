"""All metrics: those that modules declare, and those that users register.

A new metric is declared where it is computed, in a module of `list_shipped`.
Nothing here needs TensorFlow, and neither do these modules.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from tfcomp.statistics.limits import REAL, Limits
from tfcomp.statistics.metric import OWN, Chart, Metric, Of

# Where runs record what users have declared, in `metrics.json`.
OWN_METRICS = "own_measures"
# Entries of the files of a run that are no metrics.
RESERVED = ("stages", "start", "version", "name")
Function = TypeVar("Function", bound=Callable[..., Any])


def _collect(module: ModuleType) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for value in vars(module).values():
        if getattr(value, "__module__", "") == module.__name__:
            found |= {m.name: m for m in getattr(value, "metrics", ())}
    return found


@functools.cache
def list_shipped() -> dict[str, Metric]:
    """Returns the metrics of tfcomp by name, as they are computed and shown.

    The modules that declare them import SciPy, for which `--help` cannot wait.
    """
    from tfcomp.analysis import geometry, probes, scores
    from tfcomp.evaluation import (
        geometry_measures,
        image_measures,
        stage_measures,
    )

    analysis = (scores, geometry, probes)
    found: dict[str, Metric] = {}
    for module in (
        *analysis,
        image_measures,
        geometry_measures,
        stage_measures,
    ):
        found |= _collect(module)
    return found


def list_metrics(*of: Of, own: bool | None = None) -> list[Metric]:
    """Returns the metrics, all or those that are asked for, in order.

    Args:
        of: What they have values of.
        own: True for metrics of users alone, False for none of them.
    """
    return [
        metric
        for metric in (*list_shipped().values(), *OWN.values())
        if (not of or metric.of in of) and own in (None, metric.is_own)
    ]


def list_leading(*of: Of) -> dict[str, str]:
    """Returns labels by name of what figures of sweeps show.

    Of images it is the OOD score, after the ID error.
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
    """Finds the metric that a name stands for; None if it is none.

    Names are those of metrics, alone or after a part of a run: `ood/mse` and
    `ood_mse`, `layers/stage_0/factorization`.
    """
    metrics = list_shipped() | OWN
    last = path.rpartition("/")[2]
    if last in metrics:
        return metrics[last]
    if last.partition("_")[0] not in ("id", "ood"):
        return None
    ends = [last[at + 1 :] for at, c in enumerate(last) if c == "_"]
    found = (metrics[end] for end in ends if end in metrics)
    return next((m for m in found if m.of == "image"), None)


def find_limits(path: str) -> Limits:
    """Finds the range of what a name stands for; all numbers if unknown."""
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

    A function of a stage takes one object, with `activations` [n, units],
    `factors` [n, factors] and `is_ood` [n], and returns a number, or None
    where there is none. Runs have it as `layers.<stage>.<name>`. A function
    of images takes one with `images` and `truth` [n, rows, columns, channels],
    `factors` and `is_ood`, and returns a number for each image, [n], by that
    image alone: of many images, it is given some at a time. Runs have the
    means over ID and OOD as `id.<name>` and `ood.<name>`.

    Args:
        name: In files and tables: small letters, digits and underscores.
        per: `stage` or `image`.
        label: In figures; by default the name.
        range: Least and largest possible value; intervals stay inside.
        unit: Of the number, as `px`.
        better: `low` or `high`, if one of them is better.

    Raises:
        ValueError: If the name is taken, or an argument breaks its rule.
    """
    metric = _make_own(name, per, label, range, unit, better)

    def add(function: Function) -> Function:
        text = (function.__doc__ or "").strip().split("\n\n")[0]
        about = " ".join(text.split())
        _add(dataclasses.replace(metric, function=function, about=about))
        return function

    return add


def describe_own() -> dict[str, dict[str, Any]]:
    """Describes the metrics of users as runs record them in `metrics.json`."""
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
        for m in OWN.values()
    }


def forget_own() -> None:
    """Removes the metrics of users."""
    OWN.clear()


def adopt_metrics(recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Declares what runs have recorded, without the code that computes it.

    Metrics that are known stay; an entry that breaks a rule is left out.
    """
    for name, entry in recorded.items():
        if name in list_shipped() or name in OWN:
            continue
        with contextlib.suppress(KeyError, TypeError, ValueError):
            low, high = entry["range"]
            low = -math.inf if low is None else low
            ends = low, math.inf if high is None else high
            texts = entry["unit"], entry["better"]
            _add(_make_own(name, entry["per"], entry["label"], ends, *texts))


def _make_own(
    name: str,
    per: str,
    label: str,
    range: tuple[float, float],
    unit: str,
    better: str | None,
) -> Metric:
    """Makes a metric of a user, if arguments of `register_measure` allow it."""
    is_word = name.isascii() and name.isidentifier() and name == name.lower()
    limits = Limits(math.nan)  # in no order
    with contextlib.suppress(TypeError, ValueError):
        low, high = map(float, range)
        limits = Limits(low, high)
    is_range, is_way = limits.low < limits.high, better in (None, "low", "high")
    for holds, rule in (
        (is_word, "its name must be small letters, digits and underscores"),
        (name not in RESERVED, "its name must be no name of another entry"),
        (per in ("stage", "image"), f"per must be stage or image, got {per!r}"),
        (is_way, f"better must be low, high or None, got {better!r}"),
        (is_range, f"range must be (low, high), low < high, got {range!r}"),
    ):
        if not holds:
            raise ValueError(f"the measure {name!r}: {rule}")
    made: dict[str, Any] = {"of": per, "unit": unit, "better": better}
    made |= {"is_leading": True, "is_own": True}
    metric = Metric(name, label or name, limits=limits, **made)
    if per == "image":
        return metric
    chart = Chart(name, metric.label, metric.axis)
    return dataclasses.replace(metric, chart=chart)


def _add(metric: Metric) -> None:
    known = OWN.get(metric.name)
    # A module that is imported again declares the same thing again, and a
    # plugin what a run has recorded of it.
    is_same = metric.name not in list_shipped() and (
        known is None
        or None in (known.function, metric.function)
        or _where(known.function) == _where(metric.function)
    )
    if not is_same:
        raise ValueError(f"the measure {metric.name!r} is registered already")
    OWN[metric.name] = metric


def _where(function: Any) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{getattr(function, '__module__', '')}:{name}"
