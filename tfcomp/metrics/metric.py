"""Declares metrics, at the functions that compute them.

A new metric is one file: a module in the folder `tfcomp/metrics`, say
`worst_error.py`, with a function below its declaration.

    @computes("run", POSITIVE, better="low", worst_error="worst error: ...")
    def measure_worst_error(analysis: RunAnalysis) -> Scores:
        return {"worst_error": finite_or_none(analysis.error.max())}

`registry.list_shipped` finds the module. From the declaration follow the files
of a run, charts in TensorBoard, lines of the report, figures and intervals of
sweeps and `tfcomp compare`; docs/outputs.md defines it in words. What the
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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tfcomp.statistics.limits import REAL, Limits

Of = Literal["image", "stage", "stages", "run"]
Better = Literal["low", "high"]
Function = TypeVar("Function", bound=Callable[..., Any])


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
    floor: float | None = None  # lower end of the axis in these figures
    of: Of = "run"
    function: Callable[..., Any] | None = None  # None if it is not imported
    is_user: bool = False

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
    floor: float | None = None,
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
        floor: Lower end of the axis in these figures.
        **texts: By name `<label>: <definition>` of metrics that pages show.
    """

    def declare(function: Function) -> Function:
        metrics = []
        for name, text in (dict.fromkeys(names.split(), "") | texts).items():
            label, _, about = text.partition(": ")
            metric = Metric(
                name=name,
                label=label or name.replace("_", " "),
                about=about,
                limits=limits,
                unit=unit,
                better=better,
                chart=chart,
                is_leading=is_leading,
                floor=floor,
                of=of,
                function=function,
            )
            metrics.append(metric)
        # The uppermost declaration comes first.
        vars(function)["metrics"] = metrics + list_declared(function)
        return function

    return declare


def list_declared(function: object) -> list[Metric]:
    """Lists the metrics that `computes` has declared, in order."""
    return list(getattr(function, "metrics", ()))


# Metrics that users have registered (`tfcomp.register_metric`), by name.
REGISTERED: dict[str, Metric] = {}


def list_registered(of: Of) -> list[Metric]:
    """Lists the metrics of users that can be computed in this process."""
    return [m for m in REGISTERED.values() if m.of == of and m.function]
