"""Verdicts: an interval over seeds against a rule.

A rule is a set of numbers, `> 0.5` or `2.5 to 3.5`. If the whole 95 % interval
of an estimate lies inside, the verdict is reproduced; if it lies outside,
refuted; else undecided, as with too few seeds. A trend has no interval: Page's
test decides, in either direction.
"""

import enum
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tfcomp.statistics.estimates import Estimate

# Two seeds have an interval of 12.7 standard errors on either side: formally
# enough, and blind to the third seed that behaves in another way.
MIN_SEEDS = 3
SIGNIFICANT = 0.05


class Verdict(enum.StrEnum):
    """Answer of the evidence to a claim."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    NOT_VALID = "test not valid"


@dataclass(frozen=True)
class Rule:
    """Open interval, or everything outside a closed one."""

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
        """Returns True if all of an interval agrees with the rule."""
        if self.outside:
            return high < self.low or low > self.high
        return self.low < low and high < self.high

    def is_violated(self, low: float, high: float) -> bool:
        """Returns True if all of an interval contradicts the rule."""
        if self.outside:
            return self.low <= low and high <= self.high
        return high <= self.low or low >= self.high

    def accepts(self, value: float) -> bool:
        """Returns True if a number agrees with the rule."""
        return self.is_met(value, value)

    def order_trend(self, trend: tuple[float, float]) -> tuple[float, float]:
        """Returns the p of the claimed trend, and of the opposite one."""
        return trend if math.isinf(self.high) else trend[::-1]

    def compute_refutation_p(self, estimate: Estimate) -> float | None:
        """Returns the p of a refutation; None if there is no test."""
        if estimate.trend is not None:
            return self.order_trend(estimate.trend)[1]
        if estimate.test is None:
            return None
        # Inside both bounds, or beyond the nearer one.
        bounds = filter(math.isfinite, (self.low, self.high))
        return max(map(estimate.test, bounds))


def above(bound: float) -> Rule:
    """Returns the rule of numbers greater than a bound."""
    return Rule(low=bound)


def below(bound: float) -> Rule:
    """Returns the rule of numbers less than a bound."""
    return Rule(high=bound)


def judge(estimate: Estimate | None, rule: Rule) -> tuple[Verdict, str]:
    """Returns the verdict on a number, and the reason if it needs one."""
    if estimate is None:
        return Verdict.NOT_RUN, "no such run"
    if estimate.count < MIN_SEEDS:
        unit = "seeds" if estimate.unit == "share" else estimate.unit
        reason = f"{estimate.count} of at least {MIN_SEEDS} {unit}"
        return Verdict.UNDECIDED, reason
    if estimate.trend is not None:
        claimed, other = rule.order_trend(estimate.trend)
        if claimed < SIGNIFICANT:
            return Verdict.REPRODUCED, f"Page's p = {claimed:.2g}"
        if other < SIGNIFICANT:
            return Verdict.REFUTED, f"the other way, Page's p = {other:.2g}"
        return Verdict.UNDECIDED, f"no trend, Page's p = {claimed:.2g}"
    if estimate.low is None or estimate.high is None:
        return Verdict.UNDECIDED, "no interval"
    if rule.is_met(estimate.low, estimate.high):
        return Verdict.REPRODUCED, ""
    if rule.is_violated(estimate.low, estimate.high):
        return Verdict.REFUTED, ""
    return Verdict.UNDECIDED, "the interval straddles the rule"


def combine(verdicts: Sequence[Verdict]) -> tuple[Verdict, str]:
    """Returns the verdict on a claim that all of its parts must support."""
    counts = Counter(verdicts)
    if counts[Verdict.NOT_RUN] == len(verdicts):
        return Verdict.NOT_RUN, "no run that it needs was found"
    reason = ", ".join(
        f"{counts[verdict]} of {len(verdicts)} {verdict}"
        for verdict in Verdict
        if counts[verdict]
    )
    if counts[Verdict.REFUTED]:  # a false part makes it false
        return Verdict.REFUTED, reason
    if counts[Verdict.UNDECIDED] or counts[Verdict.NOT_RUN]:
        return Verdict.UNDECIDED, reason
    return Verdict.REPRODUCED, reason
