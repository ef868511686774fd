"""Verdicts: an interval over seeds against a rule, and nothing else.

A rule is a set of numbers, `> 0.5` or `2.5 to 3.5`. If the whole 95 % interval
of an estimate lies inside, it is reproduced, if the whole lies outside,
refuted, and else undecided, as with too few seeds; without any it is not run. A
trend has no interval: Page's test decides, of either direction. A claim has
several parts, each with a number, a rule and a verdict; refutations are
corrected for their number (Holm).
"""

from __future__ import annotations

import enum
import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tfcomp.statistics.seed_tests import adjust_by_holm
from tfcomp.studies.claims.evidence import Run
from tfcomp.studies.claims.run_numbers import Estimate
from tfcomp.studies.claims.selection import MIN_SEEDS, Group

SIGNIFICANT = 0.05
MIXED = "measured by several versions of the code: run tfcomp measure"


class Verdict(enum.StrEnum):
    """What the evidence says of a claim."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    NOT_VALID = "test not valid"


@dataclass(frozen=True)
class Rule:
    """An open interval, or all that is outside a closed one."""

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

    def order_trend(self, trend: tuple[float, float]) -> tuple[float, float]:
        """The p of the trend that is claimed, and of the other way."""
        return trend if math.isinf(self.high) else trend[::-1]

    def compute_refutation_p(self, estimate: Estimate) -> float | None:
        """The p of a number that contradicts the rule; None if it has none."""
        if estimate.trend is not None:
            return self.order_trend(estimate.trend)[1]
        if estimate.test is None:
            return None
        # Inside both bounds, or beyond the nearer one.
        bounds = filter(math.isfinite, (self.low, self.high))
        return max(map(estimate.test, bounds))


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


def decide(estimate: Estimate | None, rule: Rule) -> tuple[Verdict, str]:
    """The verdict on one number, and why if it is not plain."""
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


def correct_refutations(parts: Sequence[Part]) -> list[Part]:
    """Leaves a part undecided if Holm's correction saves it from refutation."""
    # All parts of a claim that decide and were judged.
    family = [p for p in parts if p.decides and p.estimate and not p.problem]
    ps = [
        part.rule.compute_refutation_p(part.estimate)
        if part.verdict is Verdict.REFUTED
        else 1.0
        for part in family
    ]
    saved = {
        id(part): f"refuted but for Holm's correction (p = {p:.2g})"
        for part, p in zip(family, adjust_by_holm(ps), strict=True)
        if part.verdict is Verdict.REFUTED and p is not None
        if p >= SIGNIFICANT
    }
    return [
        replace(part, problem=saved[id(part)]) if id(part) in saved else part
        for part in parts
    ]


@dataclass(frozen=True)
class Part:
    """One number of a claim, judged by one rule.

    Attributes:
        label: Of which runs, as `donut, bump`.
        quantity: What the number is, with its unit.
        estimate: The number; None if there is none.
        groups: The runs behind it, one group for each setting.
        note: What else is to be said.
        fitted: How many runs are fitted, as `4 of 5 fitted`, if not all are.
        problem: Why the runs prove nothing, whatever the number.
        is_run: Whether it was tried, where no runs show it.
        decides: Whether it counts for the claim, or only supports it.
        of: The setting that it belongs to.
        num_runs: How many runs of it there are, fitted or not.
        is_fresh: Whether these are of seeds that no rule was written on.
    """

    label: str
    quantity: str
    estimate: Estimate | None
    rule: Rule
    groups: Sequence[Group] = ()
    note: str = ""
    fitted: str = ""
    problem: str = ""
    is_run: bool = False
    decides: bool = True
    of: str = ""
    num_runs: int = 0
    is_fresh: bool = False

    @property
    def verdict(self) -> Verdict:
        """What the number says of the claim."""
        return self._judgement[0]

    @property
    def reason(self) -> str:
        """Why, where it is not plain."""
        return self._judgement[1]

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for group in self.groups for run in group.runs)

    @property
    def differences(self) -> tuple[str, ...]:
        """From the published setting, and what else is to be said."""
        found = [d for group in self.groups for d in group.differences]
        notes = filter(None, [self.note, self.fitted])
        return tuple(dict.fromkeys([*found, *notes]))

    @functools.cached_property
    def _judgement(self) -> tuple[Verdict, str]:
        found, problem = self.estimate, self.problem
        if found is None:
            # There may be runs, but not this number of them.
            has_runs = self.groups and all(group.runs for group in self.groups)
            if not (self.is_run or has_runs):
                return decide(None, self.rule)
            return Verdict.UNDECIDED, problem or "the runs lack this number"
        if not problem and len(found.versions) > 1:
            problem = MIXED
        if problem and found.count >= MIN_SEEDS:
            return Verdict.UNDECIDED, problem
        return decide(found, self.rule)


def combine(parts: Sequence[Part]) -> tuple[Verdict, str]:
    """The verdict on a claim that says all of its deciding parts, and why."""
    deciding = [part for part in parts if part.decides]
    counts = Counter(part.verdict for part in deciding)
    if counts[Verdict.NOT_RUN] == len(deciding):
        return Verdict.NOT_RUN, "no run that it needs was found"
    reason = ", ".join(
        f"{counts[verdict]} of {len(deciding)} {verdict}"
        for verdict in Verdict
        if counts[verdict]
    )
    if counts[Verdict.REFUTED]:  # a false part makes it false
        return Verdict.REFUTED, reason
    if counts[Verdict.UNDECIDED] or counts[Verdict.NOT_RUN]:
        return Verdict.UNDECIDED, reason
    return Verdict.REPRODUCED, reason
