"""Declares metrics, at the functions that compute them.

    @computes("image", POSITIVE, better="low", mse="MSE: the squared error")
    def score_images(images, truth): ...

The files of a run, charts in TensorBoard, lines of the report, figures and
intervals of sweeps, `tfcomp compare` and the table in the docs follow from the
declaration. `tfcomp.metrics.registry` lists all metrics.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tfcomp.statistics.limits import REAL, Limits

# Arguments and results of a function: images, and a value for each; one stage,
# and its numbers; a run, and numbers by stage and name (`stages`), or by name.
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
        return f"{self.label} ({self.unit})" if self.unit else self.label


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

    Several declarations of one function stand above each other. docs/outputs.md
    defines `names`, separated by spaces; `texts` are `<label>: <definition>` of
    metrics that pages show, by name.
    """

    def add(function: Function) -> Function:
        made = []
        for name, text in (dict.fromkeys(names.split(), "") | texts).items():
            label, _, about = text.partition(": ")
            shown = limits, unit, better, chart, is_leading, floor
            label = label or name.replace("_", " ")
            made.append(Metric(name, label, about, *shown, of, function))
        vars(function)["metrics"] = made + list_declared(function)
        return function

    return add


def list_declared(function: object) -> list[Metric]:
    """Returns the metrics that `computes` has declared, in order."""
    return list(getattr(function, "metrics", ()))


# Metrics that users have registered (`tfcomp.register_measure`), by name.
REGISTERED: dict[str, Metric] = {}


def list_registered(of: Of) -> list[Metric]:
    """Returns the metrics of users that can be computed in this process."""
    return [m for m in REGISTERED.values() if m.of == of and m.function]
