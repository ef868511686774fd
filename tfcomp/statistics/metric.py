"""Declares metrics, at the functions that compute them.

    @computes("image", POSITIVE, better="low", mse="MSE: the squared error")
    def score_images(images, truth): ...

The files of a run, charts in TensorBoard, lines of the report, figures and
intervals of sweeps, `tfcomp compare` and the table in the docs follow from the
declaration. `tfcomp.evaluation.metrics` lists all metrics.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

# Arguments and results of a function: images, and a value for each; one stage,
# and its numbers; a run, and numbers by stage and name (`stages`), or by name.
Of = Literal["image", "stage", "stages", "run"]
Better = Literal["low", "high"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Limits:
    """Range of a quantity, ends included, in which its intervals stay.

    A mean and its standard error are carried to a scale without ends, Student's
    interval is made there, and its ends are carried back (the delta method):

        range               scale                           as for
        above a number      logarithm of the distance       MSE, counts
        below a number      the same, turned around         R^2 of predictions
        between two         log odds of the place in it     shares, correlations

    For a correlation log odds are twice Fisher's z. Numbers of single runs are
    not transformed: many lie at an end, which has no place on such a scale.
    """

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        low = "(-inf" if math.isinf(self.low) else f"[{self.low:g}"
        high = "inf)" if math.isinf(self.high) else f"{self.high:g}]"
        return f"{low}, {high}"

    def widen(self, values: Sequence[float]) -> "Limits":
        """Returns the range; all numbers if one of the values is outside."""
        is_inside = all(self.low <= value <= self.high for value in values)
        return self if is_inside else REAL

    def link(self, value: float) -> float:
        """Maps a value inside the range to the scale without ends."""
        above, below = value - self.low, self.high - value
        if min(above, below) <= 0:
            return -math.inf if above <= 0 else math.inf
        if self == REAL:
            return value
        up = 0.0 if math.isinf(self.low) else math.log(above)
        return up - (0.0 if math.isinf(self.high) else math.log(below))

    def inverse_link(self, place: float) -> float:
        """Maps a number on the scale without ends into the range."""
        if self == REAL:
            return place
        if math.isinf(self.high):
            return self.low + _exp(place)
        if math.isinf(self.low):
            return self.high - _exp(-place)
        share = 0.5 * (1 + math.tanh(place / 2))
        return self.low + (self.high - self.low) * share

    def derivative(self, value: float) -> float:
        """Returns the derivative of the link at a value inside the range."""
        if self == REAL:
            return 1.0
        return 1 / (value - self.low) + 1 / (self.high - value)


REAL = Limits()
POSITIVE = Limits(low=0.0)
SHARE = Limits(0.0, 1.0)
CORRELATION = Limits(-1.0, 1.0)
AT_MOST_ONE = Limits(high=1.0)


def _exp(place: float) -> float:
    return math.exp(place) if place < 709 else math.inf


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
