"""Two questions for a number: does the claim hold, and is it specific?

It **holds** if the 95 % interval over seeds lies beyond the bound that the
sentence states. It is **specific** if the interval of the difference to each
control excludes 0 on the claimed side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tfcomp.statistics import seed_statistics
from tfcomp.statistics.limits import REAL, Limits

if TYPE_CHECKING:
    from pandas import Series

MIN_SEEDS = 3
MIN_FITTED = 0.5  # share of the runs that were tried
ALL = "trained on all"
UNTRAINED = "untrained"
ESTIMATORS = {
    "mean": seed_statistics.estimate_mean,
    "geometric mean": seed_statistics.estimate_geometric,
    "share": seed_statistics.estimate_share,
}


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval; NaN where it is not known."""

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0


@dataclass(frozen=True)
class Control:
    """The same quantity in a control, and the claimed networks less it.

    Attributes:
        number: The quantity in the control.
        difference: Claimed networks less the control; of the log10 if the
            quantity is a geometric mean.
    """

    number: Interval
    difference: Interval


@dataclass(frozen=True)
class Row:
    """A quantity of a claim in one setting, judged by the two questions.

    Attributes:
        part: The setting, as `bump`.
        quantity: In words, with its unit.
        bound: As `> 0.5`; empty if the quantity only stands beside.
        number: The quantity in the networks of the claim.
        tried: How many runs there are, fitted or not.
        holds: yes, no, open, or - without a bound.
        specific: yes, no with the controls that have it, too, open, or -.
        controls: By name.
        samples: The values by name of the networks and by seed, for pictures.
        note: What is missing, or what else is to be said.
        shown: False for rows of the CSV file alone.
        claim: As `C6`; its file sets it.
    """

    part: str
    quantity: str
    bound: str
    number: Interval
    tried: int
    holds: str
    specific: str
    controls: Mapping[str, Control] = field(default_factory=dict)
    samples: Mapping[str, Series] = field(default_factory=dict)
    note: str = ""
    shown: bool = True
    claim: str = ""


def judge(
    part: str,
    quantity: str,
    values: Series,
    bound: str = "",
    tried: int | None = None,
    controls: Mapping[str, Series] | None = None,
    by: str = "mean",
    limits: Limits = REAL,
    note: str = "",
    shown: bool = True,
    missing: str = "",
) -> Row:
    """Judges a quantity.

    Args:
        part: The setting, as `bump`.
        quantity: In words, with its unit.
        values: The number of each fitted run, by seed.
        bound: As `> 0.5`, which the whole interval must meet.
        tried: How many runs there are, fitted or not.
        controls: The same number in networks that must not have it, by seed.
            Those that are trained on all combinations are compared by Welch's
            interval, others in pairs of equal seeds.
        by: mean, geometric mean, or share (of values that are 1, else 0).
        limits: The range of the quantity, inside which intervals stay.
        note: What else is to be said.
        shown: False for rows of the CSV file alone.
        missing: A control that the evidence lacks; `specific` is then open.
    """
    if tried is None:
        tried = len(values)
    number = estimate(values, by, limits)
    holds = "-"
    if bound:
        holds = compare(number, bound)
    if len(values) < MIN_FITTED * tried:
        holds = "open"

    samples = {"networks": values}
    compared: dict[str, Control] = {}
    for name, sample in (controls or {}).items():
        samples[name] = sample
        compared[name] = Control(
            number=estimate(sample, by, limits),
            difference=subtract(values, sample, by, is_paired=name != ALL),
        )
    specific = "-"
    if bound and compared:
        specific = judge_specific(compared, bound)
    if missing and not specific.startswith("no"):
        specific = "open"
        lack = f"missing: {missing}"
        if note:
            lack = f"{note}; {lack}"
        note = lack
    return Row(
        part=part,
        quantity=quantity,
        bound=bound,
        number=number,
        tried=tried,
        holds=holds,
        specific=specific,
        controls=compared,
        samples=samples,
        note=note,
        shown=shown,
    )


def estimate(values: Series, by: str, limits: Limits = REAL) -> Interval:
    """Estimates a number over seeds; unknown if one of them lacks it.

    Args:
        values: Numbers by seed; NaN where a seed has none.
        by: A name of `ESTIMATORS`.
        limits: Range of the numbers; the interval stays inside.
    """
    make_estimate = ESTIMATORS[by]
    numbers: dict[Any, float] = values.to_dict()
    statistics = make_estimate(numbers, limits)
    if statistics is None:
        return Interval()
    ends = np.array([statistics.low, statistics.high], float)  # None is NaN
    low, high = ends.tolist()
    return Interval(
        mean=statistics.mean,
        low=low,
        high=high,
        n=statistics.count,
    )


def compare(number: Interval, bound: str) -> str:
    """Answers if the whole interval meets a bound: yes, no or open.

    Args:
        number: The number with its interval.
        bound: A sign and a limit, as `> 0`.
    """
    sign, text = bound.split()
    limit = float(text)
    if number.n < MIN_SEEDS:
        return "open"

    if sign == ">":
        is_beyond = number.low > limit
        is_outside = number.high <= limit
    else:
        is_beyond = number.high < limit
        is_outside = number.low >= limit
    if is_beyond:
        return "yes"
    if is_outside:
        return "no"
    return "open"


def subtract(
    values: Series,
    control: Series,
    by: str,
    is_paired: bool,
) -> Interval:
    """Estimates values less a control's values, with a 95 % interval.

    Args:
        values: Numbers by seed.
        control: Numbers of the control, by seed.
        by: A name of `ESTIMATORS`.
        is_paired: Whether equal seeds are compared.
    """
    from scipy import stats

    first = values.dropna()
    second = control.dropna()
    if by == "geometric mean":
        first = np.log10(first)
        second = np.log10(second)
    if is_paired:
        differences = first - second
        return estimate(differences.dropna(), "mean")
    if min(len(first), len(second)) < MIN_SEEDS:
        return Interval()

    difference = float(first.mean() - second.mean())
    # Welch's interval for samples of different spread.
    width = 0.0
    first_error = first.var() / len(first)
    second_error = second.var() / len(second)
    error = first_error + second_error
    if error > 0:
        first_weight = first_error**2 / (len(first) - 1)
        second_weight = second_error**2 / (len(second) - 1)
        freedom = error**2 / (first_weight + second_weight)
        quantile = stats.t.ppf(0.975, freedom)
        width = float(quantile * math.sqrt(error))
    return Interval(
        mean=difference,
        low=difference - width,
        high=difference + width,
        n=len(first) + len(second),
    )


def judge_specific(controls: Mapping[str, Control], bound: str) -> str:
    """Answers if the networks differ from all controls on the claimed side.

    Args:
        controls: Controls by name.
        bound: The claimed side, as `> 0`.
    """
    sign, _ = bound.split()
    alike = []
    is_open = False
    for name, control in controls.items():
        count = min(control.number.n, control.difference.n)
        if count < MIN_SEEDS:
            is_open = True
        elif compare(control.difference, f"{sign} 0") != "yes":
            alike.append(name)
    if alike:
        return f"no: {', '.join(alike)}"
    if is_open:
        return "open"
    return "yes"
