"""Measures: what a number is, declared once, where it is computed.

    @declare("mse: MSE [0, inf] low", per="image")
    def score_images(images, truth): ...

From the declaration follow the files of a run, charts in TensorBoard, lines of
the report, figures and intervals of sweeps, what `tfcomp compare` offers, and
the table in the docs. Users declare theirs with `register_measure`.

Nothing here needs TensorFlow, and neither do the modules that declare.
"""

import contextlib
import dataclasses
import functools
import importlib
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from tfcomp.statistics.limits import REAL, Limits

# The modules that declare measures, in the order in which these are computed;
# imported when a measure is first asked for.
SOURCES = (
    "tfcomp.analysis.scores",
    "tfcomp.analysis.geometry",
    "tfcomp.analysis.probes",
    "tfcomp.evaluation.image_measures",
    "tfcomp.evaluation.geometry_measures",
    "tfcomp.evaluation.stage_measures",
)
# Where runs record what users have declared, in `metrics.json`.
OWN_MEASURES = "own_measures"
KINDS = ("stage", "image", "run")
# Entries of the files of a run that are no measures.
RESERVED = ("stages", "start", "version", "name")
Function = TypeVar("Function", bound=Callable)
Text = str | tuple[str, Mapping[str, str]]


@dataclass(frozen=True)
class Chart:
    """What shows measures of stages side by side, each in a panel.

    The axis is empty if it depends on the factors.
    """

    name: str
    title: str
    axis: str
    text: str = ""
    section: Literal["layers", "interactions"] = "layers"


@dataclass(frozen=True)
class Measure:
    """A number that says something about a network.

    It has a value for each stage, for each image (and a mean over ID and over
    OOD), or for each run. Figures of sweeps show it if it is leading, cut off
    below its floor; its chart is where stages are compared by it. The function
    is of a `study` (`RunAnalysis`), of a `stage` or of `images` (as those
    of users, which are their own), or takes something else.
    """

    name: str
    label: str
    limits: Limits
    about: str = ""
    per: str = "run"
    unit: str = ""
    better: Literal["low", "high"] | None = None
    chart: Chart | None = None
    is_leading: bool = False
    floor: float | None = None
    function: Callable | None = None
    of: str = ""
    is_own: bool = False

    @property
    def axis(self) -> str:
        """The label with the unit, as an axis has it."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


_MEASURES: dict[str, Measure] = {}
_HEAD = re.compile(
    r"(\w+): (.+?)(?: \[(\S+), (\S+)\])?(?: in (\w+))?(?: (low|high))?"
)


def declare(
    *texts: Text, of: str = "", **traits: Any
) -> Callable[[Function], Function]:
    """Declares what a function computes: one number, or several by name.

    Further arguments are those of `parse_measures`. Raises ValueError if
    another function computes a measure of that name.
    """
    measures = parse_measures(*texts, **traits)

    def add(function: Function) -> Function:
        for measure in measures:
            _add(dataclasses.replace(measure, function=function, of=of))
        return function

    return add


# Of functions of a study: lists, a number per stage, and numbers of a run.
declare_stages = functools.partial(declare, of="study")
declare_runs = functools.partial(declare, of="study", per="run")


def parse_measures(
    *texts: Text,
    per: str = "stage",
    charts: Mapping[str, Chart] | None = None,
    leading: Collection[str] = (),
    floors: Mapping[str, float] | None = None,
) -> list[Measure]:
    """Measures from texts: a line for each, and below it what it is.

        name: label [least, largest] in unit better
            what it is, which may go on in further lines

    With words beside a text, all in it are declared for each of them, in place
    of `{key}` and `{text}`. What follows the label may be left out. Charts,
    leading ones and floors (see `Measure`) are given by name. Raises ValueError
    if a line cannot be read.
    """
    pairs = [(t, {"": ""}) if isinstance(t, str) else t for t in texts]
    found = []
    for text, words in pairs:
        blocks = re.split(r"\n(?=[\w{])", textwrap.dedent(text).strip())
        for (key, word), block in itertools.product(words.items(), blocks):
            head, _, about = block.format(key=key, text=word).partition("\n")
            match = _HEAD.fullmatch(" ".join(head.split()))
            if match is None:
                raise ValueError(f"{head!r} must be NAME: LABEL [LOW, HIGH]")
            name, label, low, high, unit, better = match.groups()
            limits = Limits(float(low), float(high)) if low else REAL
            about, chart = " ".join(about.split()), (charts or {}).get(name)
            traits = unit or "", better, chart, name in leading
            floor = (floors or {}).get(name)
            measure = Measure(name, label, limits, about, per, *traits, floor)
            found.append(measure)
    return found


def register_measure(
    name: str,
    *,
    per: str = "stage",
    label: str = "",
    range: tuple[float, float] = (-math.inf, math.inf),
    unit: str = "",
    better: str | None = None,
) -> Callable[[Function], Function]:
    """Registers a measure of your own; a decorator of the function.

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
    measure = _make_own(name, per, label, range, unit, better)

    def add(function: Function) -> Function:
        text = (function.__doc__ or "").strip().split("\n\n")[0]
        of = "stage" if per == "stage" else "images"
        found = {
            "function": function,
            "of": of,
            "about": " ".join(text.split()),
        }
        list_measures()  # a name of ours is taken before its first use, too
        _add(dataclasses.replace(measure, **found))
        return function

    return add


def list_measures(
    per: str = "", of: str = "", own: bool | None = None
) -> list[Measure]:
    """The declared measures, all or those that are asked for, in order."""
    for module in SOURCES:
        importlib.import_module(module)

    def find_place(measure: Measure) -> int:
        """In the order of modules, whatever was imported first."""
        module = getattr(measure.function, "__module__", "")
        # Those of users are the last.
        return SOURCES.index(module) if module in SOURCES else len(SOURCES)

    return [
        m
        for m in sorted(_MEASURES.values(), key=find_place)
        if per in ("", m.per) and of in ("", m.of) and own in (None, m.is_own)
    ]


def list_leading(per: str) -> dict[str, str]:
    """Labels by name of what figures of sweeps show; of images those of OOD."""
    leading = {m.name: m.label for m in list_measures(per) if m.is_leading}
    if per != "image":
        return leading
    return {"id_relative_mse": "ID relative MSE"} | {
        f"ood_{name}": f"OOD {label}" for name, label in leading.items()
    }


def list_charts(section: str = "") -> dict[Chart, list[Measure]]:
    """Charts and the measures that they show, in order."""
    charts: dict[Chart, list[Measure]] = {}
    for measure in list_measures("stage"):
        if measure.chart and section in ("", measure.chart.section):
            charts.setdefault(measure.chart, []).append(measure)
    return charts


def find_measure(path: str) -> Measure | None:
    """The measure that a name stands for; None if it is none.

    Names are those of measures, alone or, of numbers of a part of a run,
    after that part: `ood/mse` and `ood_mse`, `layers/stage_0/factorization`.
    """
    measures = {measure.name: measure for measure in list_measures()}
    last = path.rpartition("/")[2]
    if last in measures:
        return measures[last]
    if last.partition("_")[0] not in ("id", "ood"):
        return None
    ends = [last[at + 1 :] for at, c in enumerate(last) if c == "_"]
    found = (measures[end] for end in ends if end in measures)
    return next((m for m in found if m.per == "image"), None)


def find_limits(path: str) -> Limits:
    """The range of what a name stands for; all numbers if it is unknown."""
    measure = find_measure(path)
    return measure.limits if measure else REAL


def describe_own() -> dict[str, dict[str, Any]]:
    """What users have declared, as runs record it in `metrics.json`."""
    return {
        m.name: {
            "per": m.per,
            "label": m.label,
            "range": [
                end if math.isfinite(end) else None
                for end in (m.limits.low, m.limits.high)
            ],
            "unit": m.unit,
            "better": m.better,
        }
        for m in list_measures(own=True)
    }


def forget_own() -> None:
    """Takes back what users have declared."""
    for measure in list_measures(own=True):
        del _MEASURES[measure.name]


def adopt_measures(recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Declares what runs have recorded, without the code that computes it.

    What is declared already stays; an entry that breaks a rule is left out.
    """
    known = {measure.name for measure in list_measures()}
    for name, entry in recorded.items():
        if name in known:
            continue
        try:
            low, high = entry["range"]
            low = -math.inf if low is None else low
            ends = low, math.inf if high is None else high
            texts = entry["unit"], entry["better"]
            _add(_make_own(name, entry["per"], entry["label"], ends, *texts))
        except (KeyError, TypeError, ValueError):
            continue


def _make_own(
    name: str,
    per: str,
    label: str,
    range: tuple[float, float],
    unit: str,
    better: str | None,
) -> Measure:
    """A measure of a user, if the arguments of `register_measure` allow it."""
    is_word = name.isascii() and name.isidentifier() and name == name.lower()
    limits = Limits(math.nan)  # in no order
    with contextlib.suppress(TypeError, ValueError):
        low, high = map(float, range)
        limits = Limits(low, high)
    is_range, is_way = limits.low < limits.high, better in (None, "low", "high")
    for holds, rule in (
        (is_word, "its name must be small letters, digits and underscores"),
        (name not in RESERVED, "its name must be no name of another entry"),
        (per in KINDS[:2], f"per must be stage or image, got {per!r}"),
        (is_way, f"better must be low, high or None, got {better!r}"),
        (is_range, f"range must be (low, high), low < high, got {range!r}"),
    ):
        if not holds:
            raise ValueError(f"the measure {name!r}: {rule}")
    traits = label or name, limits, "", per, unit, better
    measure = Measure(name, *traits, is_leading=True, is_own=True)
    if per == "image":
        return measure
    chart = Chart(name, measure.label, measure.axis)
    return dataclasses.replace(measure, chart=chart)


def _add(measure: Measure) -> None:
    known = _MEASURES.get(measure.name)
    # A module that is imported again declares the same thing again, and a
    # plugin what a run has recorded of it.
    is_same = known is None or (
        known.is_own and None in (known.function, measure.function)
    )
    if not is_same and _where(known.function) != _where(measure.function):
        raise ValueError(f"the measure {measure.name!r} is registered already")
    _MEASURES[measure.name] = measure


def _where(function: Any) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{getattr(function, '__module__', '')}:{name}"
