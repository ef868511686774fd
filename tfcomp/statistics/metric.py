"""What a metric is: declared once, by the function that computes it.

    @computes(
        Metric("mse", "MSE", "squared error ...", POSITIVE, better="low"),
        of="image",
    )
    def score_images(images, truth): ...

From the declaration follow the files of a run, charts in TensorBoard, lines of
the report, figures and intervals of sweeps, what `tfcomp compare` offers, and
the table in the docs. `tfcomp.evaluation.metrics` lists all of them.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tfcomp.statistics.limits import REAL, Limits

# What a metric has values of, and what its function takes: images (a value for
# each, and means over ID and OOD); one stage; an analysis of a run, from which
# follow a list with a value for each of its stages, or a number of the run.
Of = Literal["image", "stage", "stages", "run"]
Better = Literal["low", "high"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Chart:
    """A figure that shows metrics of stages side by side, each in a panel.

    The axis is empty if it depends on the factors.
    """

    name: str
    title: str
    axis: str
    text: str = ""
    section: Literal["layers", "interactions"] = "layers"


@dataclass(frozen=True)
class Metric:
    """A number that says something about a network.

    Attributes:
        name: In files and tables.
        label: In figures.
        about: A sentence on what it measures.
        limits: Least and largest possible value.
        unit: Of the number, as `px`.
        better: `low` or `high`, if one of them is better.
        chart: The figure that compares stages by it.
        is_leading: True if figures of sweeps show it.
        floor: Where figures of sweeps cut it off.
        of: What it has values of.
        function: The function that computes it; None if that is not known.
        is_own: True for a metric of a user.
    """

    name: str
    label: str
    about: str = ""
    limits: Limits = REAL
    unit: str = ""
    better: Better | None = None
    chart: Chart | None = None
    is_leading: bool = False
    floor: float | None = None
    of: Of = "run"
    function: Callable[..., Any] | None = None
    is_own: bool = False

    @property
    def axis(self) -> str:
        """The label with the unit, as an axis has it."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


def computes(*metrics: Metric, of: Of) -> Callable[[Function], Function]:
    """Declares the metrics that a function computes, as its `metrics`.

    Args:
        metrics: The metrics, by the names of what the function returns.
        of: What they have values of.
    """

    def add(function: Function) -> Function:
        made = [
            dataclasses.replace(metric, of=of, function=function)
            for metric in metrics
        ]
        vars(function)["metrics"] = made
        return function

    return add


# Metrics that users have registered (`tfcomp.register_measure`), by name.
OWN: dict[str, Metric] = {}


def list_own(of: Of) -> list[Metric]:
    """Returns the metrics of users that can be computed here."""
    return [m for m in OWN.values() if m.of == of and m.function is not None]
