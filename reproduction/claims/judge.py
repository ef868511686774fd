"""Two questions for a number: does the claim hold, and is it specific?

It **holds** if the 95 % interval over seeds lies beyond the bound that the
sentence states. It is **specific** if the interval of the difference to each
control excludes 0 on the claimed side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.statistics import seed_statistics
from tfcomp.statistics.limits import REAL, Limits

if TYPE_CHECKING:
    from pandas import Series

MIN_SEEDS = 3
MIN_FITTED = 0.5  # share of the runs that were tried
ALL, UNTRAINED = "trained on all", "untrained"
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
    tried = len(values) if tried is None else tried
    number = estimate(values, by, limits)
    holds = compare(number, bound) if bound else "-"
    if len(values) < MIN_FITTED * tried:
        holds = "open"
    found = {}
    for name, sample in (controls or {}).items():
        difference = subtract(values, sample, by, is_paired=name != ALL)
        found[name] = Control(estimate(sample, by, limits), difference)
    specific = judge_specific(found, bound) if bound and found else "-"
    if missing and not specific.startswith("no"):
        specific = "open"
        note = "; ".join(filter(None, [note, f"missing: {missing}"]))
    samples = {"networks": values, **(controls or {})}
    return Row(
        part=part,
        quantity=quantity,
        bound=bound,
        number=number,
        tried=tried,
        holds=holds,
        specific=specific,
        controls=found,
        samples=samples,
        note=note,
        shown=shown,
    )


def open_row(part: str, quantity: str, missing: str) -> Row:
    """Makes the row of a quantity that the evidence lacks."""
    return Row(
        part=part,
        quantity=quantity,
        bound="",
        number=Interval(),
        tried=0,
        holds="open",
        specific="open",
        note=f"missing: {missing}",
        shown=False,
    )


def estimate(values: Series, by: str, limits: Limits = REAL) -> Interval:
    """Estimates a number over seeds; unknown if one of them lacks it."""
    numbers: dict[int, float | None] = {}
    for seed, value in zip(values.index, values.tolist(), strict=True):
        numbers[seed] = None if math.isnan(value) else value
    found = ESTIMATORS[by](numbers, limits)
    if found is None:
        return Interval()
    low = math.nan if found.low is None else found.low
    high = math.nan if found.high is None else found.high
    return Interval(found.mean, low, high, found.count)


def compare(number: Interval, bound: str) -> str:
    """Answers if the whole interval meets a bound: yes, no or open."""
    sign, text = bound.split()
    limit = float(text)
    if number.n < MIN_SEEDS:
        return "open"
    above, below = number.low > limit, number.high < limit
    if sign == ">":
        return "yes" if above else "no" if number.high <= limit else "open"
    return "yes" if below else "no" if number.low >= limit else "open"


def subtract(
    values: Series, control: Series, by: str, is_paired: bool
) -> Interval:
    """Estimates values less a control's values, with a 95 % interval."""
    from scipy import stats

    first, second = values.dropna(), control.dropna()
    if by == "geometric mean":
        first, second = np.log10(first), np.log10(second)
    if is_paired:
        return estimate((first - second).dropna(), "mean")
    if min(len(first), len(second)) < MIN_SEEDS:
        return Interval()
    difference = float(first.mean() - second.mean())
    n = len(first) + len(second)
    if first.std() == 0 and second.std() == 0:
        return Interval(difference, difference, difference, n)
    # Welch's interval for samples of different spread.
    errors = [sample.var() / len(sample) for sample in (first, second)]
    weights = [
        error**2 / (len(sample) - 1)
        for error, sample in zip(errors, (first, second), strict=True)
    ]
    freedom = sum(errors) ** 2 / sum(weights)
    width = float(stats.t.ppf(0.975, freedom) * math.sqrt(sum(errors)))
    return Interval(difference, difference - width, difference + width, n)


def judge_specific(controls: Mapping[str, Control], bound: str) -> str:
    """Answers if the networks differ from all controls on the claimed side."""
    zero = f"{bound.split()[0]} 0"
    alike, is_open = [], False
    for name, control in controls.items():
        if min(control.number.n, control.difference.n) < MIN_SEEDS:
            is_open = True
        elif compare(control.difference, zero) != "yes":
            alike.append(name)
    if alike:
        return f"no: {', '.join(alike)}"
    return "open" if is_open else "yes"
