"""Verdicts: an interval over seeds against a rule, and nothing else.

A rule is a set of numbers, `> 0.5` or `2.5 to 3.5`. An estimate is the mean
over seeds with its 95 % interval (Student). Then

    reproduced   the whole interval lies inside the set
    refuted      the whole interval lies outside
    undecided    it straddles a bound, or there are too few seeds
    not run      there is nothing to judge
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

from tfcomp.statistics.seed_statistics import compute_statistics

# Two seeds have an interval of 12.7 standard errors on either side: formally
# enough, and blind to the third seed that behaves in another way.
MIN_SEEDS = 3


class Verdict(enum.StrEnum):
    """What the evidence says of a claim."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        mean: The mean over seeds, or a fitted number.
        low: Lower end of its 95 % interval; None if there is none.
        high: Upper end.
        count: Number of seeds (or points) behind it.
        values: The number of every seed, if it is a mean.
        unit: What is counted, `seeds` or `sizes`.
        versions: Of the code that took the measures in it; empty if it is
            made of none.
    """

    mean: float
    low: float | None
    high: float | None
    count: int
    values: Mapping[int, float]
    unit: str = "seeds"
    versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """An open interval, or all that is outside a closed one.

    Attributes:
        low: Lower bound.
        high: Upper bound.
        outside: Whether the rule asks for numbers outside the bounds.
    """

    low: float = -math.inf
    high: float = math.inf
    outside: bool = False

    def __str__(self) -> str:
        if self.outside:
            if self.low == self.high:
                return f"not {abs(self.low):g}"
            return f"outside {self.low:g} to {self.high:g}"
        if math.isinf(self.high):
            return f"> {self.low:g}"
        if math.isinf(self.low):
            return f"< {self.high:g}"
        return f"{self.low:g} to {self.high:g}"

    def is_met(self, low: float, high: float) -> bool:
        """Whether all of an interval agrees with the rule."""
        if self.outside:
            return high < self.low or low > self.high
        return self.low < low and high < self.high

    def is_violated(self, low: float, high: float) -> bool:
        """Whether all of an interval contradicts the rule."""
        if self.outside:
            return self.low <= low and high <= self.high
        return high <= self.low or low >= self.high


def above(bound: float) -> Rule:
    """Greater than the bound."""
    return Rule(low=bound)


def below(bound: float) -> Rule:
    """Less than the bound."""
    return Rule(high=bound)


def near(value: float, margin: float) -> Rule:
    """Within a margin of a value."""
    return Rule(value - margin, value + margin)


def differs(margin: float = 0.0) -> Rule:
    """Farther from 0 than the margin, on either side."""
    return Rule(-margin, margin, outside=True)


def estimate_mean(values: Mapping[int, float]) -> Estimate | None:
    """Mean and interval over seeds; None without a value.

    Args:
        values: The number of every seed.
    """
    found = compute_statistics(list(values.values()))
    if found is None:
        return None
    low = high = None
    if found.half_width is not None:
        low, high = found.mean - found.half_width, found.mean + found.half_width
    return Estimate(found.mean, low, high, found.count, dict(values))


def decide(
    estimate: Estimate | None, rule: Rule, min_count: int = MIN_SEEDS
) -> tuple[Verdict, str]:
    """The verdict on one number, and why if it is not plain.

    Args:
        estimate: The number; None if there is none.
        rule: What the claim says of it.
        min_count: The fewest seeds (or sizes) that decide anything.
    """
    if estimate is None:
        return Verdict.NOT_RUN, "no such run"
    if estimate.count < min_count:
        reason = f"{estimate.count} of at least {min_count} {estimate.unit}"
        return Verdict.UNDECIDED, reason
    if estimate.low is None or estimate.high is None:
        return Verdict.UNDECIDED, "no interval"
    if rule.is_met(estimate.low, estimate.high):
        return Verdict.REPRODUCED, ""
    if rule.is_violated(estimate.low, estimate.high):
        return Verdict.REFUTED, ""
    return Verdict.UNDECIDED, "the interval straddles the rule"
