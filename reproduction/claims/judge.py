"""Two questions for a number: does the claim hold, and is it specific?

It **holds** if the 95 % interval over seeds lies beyond the bound that the
sentence states. It is **specific** if the interval of the difference to each
control excludes 0 on the claimed side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
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


@dataclass(frozen=True, eq=False)
class Row:
    """A quantity of a claim in one setting, judged by the two questions.

    Attributes:
        part: The setting, as `bump`.
        quantity: In words, with its unit.
        values: The quantity of each network of the claim, by seed.
        bound: As `> 0.5`, which the whole interval must meet; empty if the
            quantity only stands beside.
        tried: How many runs there are, if some of them have no value.
        others: The quantity by seed in networks that must not have it, by
            their name.
        by: mean, geometric mean, or share (of values that are 1, else 0).
        limits: The range of the quantity, inside which intervals stay.
        remark: What else is to be said.
        shown: False for rows of the CSV file alone.
        missing: A control that the evidence lacks; `specific` is then open.
        claim: As `C6`; its file sets it.
    """

    part: str
    quantity: str
    values: Series
    bound: str = ""
    tried: int = 0
    others: Mapping[str, Series] = field(default_factory=dict)
    by: str = "mean"
    limits: Limits = REAL
    remark: str = ""
    shown: bool = True
    missing: str = ""
    claim: str = ""

    @functools.cached_property
    def number(self) -> Interval:
        """The quantity in the networks of the claim."""
        return estimate(self.values, self.by, self.limits)

    @functools.cached_property
    def controls(self) -> Mapping[str, Control]:
        """The quantity in the other networks, by their name."""
        controls = {}
        for name, sample in self.others.items():
            controls[name] = Control(
                number=estimate(sample, self.by, self.limits),
                # Networks that were trained on all have other seeds.
                difference=subtract(
                    self.values, sample, self.by, is_paired=name != ALL
                ),
            )
        return controls

    @property
    def num_tried(self) -> int:
        """How many runs there are, fitted or not."""
        return max(self.tried, len(self.values))

    @property
    def holds(self) -> str:
        """Whether the claim holds: yes, no, open, or - without a bound."""
        if len(self.values) < MIN_FITTED * self.num_tried:
            return "open"
        if not self.bound:
            return "-"
        return compare(self.number, self.bound)

    @property
    def specific(self) -> str:
        """yes, no with the controls that have it, too, open, or -."""
        answer = "-"
        if self.bound and self.others:
            answer = judge_specific(self.controls, self.bound)
        if self.missing and not answer.startswith("no"):
            return "open"
        return answer

    @property
    def note(self) -> str:
        """What is missing, or what else is to be said."""
        notes = [self.remark]
        if self.missing:
            notes.append(f"missing: {self.missing}")
        return "; ".join(filter(None, notes))


Rows = Iterator[Row]  # what the function `judge` of a claim yields


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
    from scipy.special import stdtrit  # a tenth of the time of scipy.stats

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
        quantile = stdtrit(freedom, 0.975)
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
