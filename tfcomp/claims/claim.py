"""The vocabulary that claims are declared in.

Most claims say that a number of some runs obeys a rule. `Number` is the number
with its rule, `Measured` names the runs of one setting that it is taken from,
and `Compared` takes it from two settings at equal seeds:

    Measured("donut, bump", make_cnn("bump"), [Number(...)], [FITTED])

Both are tests: functions from the evidence to judged parts. A claim that they
cannot express has a plain function among its tests.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcomp.claims.estimation import Read
from tfcomp.claims.estimation import estimate
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.families import Arms
from tfcomp.claims.gates import Gate
from tfcomp.claims.parts import Part
from tfcomp.claims.parts import combine
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import Setting
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Test = Callable[[Evidence], list[Part]]


@dataclass(frozen=True)
class Number:
    """A number that a claim is about, and the rule that it is judged by.

    Attributes:
        quantity: What it is, with its unit.
        read: The name of a score or measure of a run; or a function of a run,
            or of the runs that are compared.
        rule: What the claim says of it.
        name: What tells it from other numbers of the same runs; the label of
            the part ends with it.
        decides: Whether it counts for the claim or only supports it.
    """

    quantity: str
    read: Read | str
    rule: Rule
    name: str = ""
    decides: bool = True


def measure(
    label: str,
    groups: Sequence[Group],
    numbers: Sequence[Number],
    gates: Sequence[Gate] = (),
    problem: str = "",
    *,
    decides: bool = True,
    required: bool = True,
) -> list[Part]:
    """Judges numbers of the same runs, a part for each number.

    Args:
        label: Of which runs.
        groups: The runs; several groups if they are compared.
        numbers: What is judged.
        gates: What training must have reached, in each group; if anything.
        problem: Why the runs prove nothing, though they pass their gates.
        decides: Whether the numbers that decide do so for these runs.
        required: Whether the claim stays undecided without these runs.
    """
    for gate, group in zip(reversed(gates), reversed(groups), strict=False):
        problem = gate.find_failure(group) or problem
    return [
        Part(
            f"{label}, {number.name}" if number.name else label,
            number.quantity,
            estimate(number.read, *groups),
            number.rule,
            groups,
            problem=problem,
            decides=decides and number.decides,
            required=required,
        )
        for number in numbers
    ]


@dataclass(frozen=True)
class Measured:
    """A test: numbers of the runs of one setting. Arguments as in `measure`."""

    label: str
    setting: Setting
    numbers: Sequence[Number]
    gates: Sequence[Gate] = ()
    decides: bool = True
    required: bool = True

    def __call__(self, evidence: Evidence) -> list[Part]:
        """Judges the numbers of the group that speaks for the setting."""
        return measure(
            self.label,
            [self.setting.find(evidence)],
            self.numbers,
            self.gates,
            decides=self.decides,
            required=self.required,
        )


@dataclass(frozen=True)
class Compared:
    """A test: numbers of two settings, seed by seed. See also `measure`.

    Attributes:
        label: What is compared.
        arms: All settings that are chosen together.
        pair: Names of the two that are compared.
        numbers: What is judged, computed from two runs of one seed.
        gates: What training must have reached, in each of the two.
        decides: Whether the numbers that decide do so in this comparison.
    """

    label: str
    arms: Arms
    pair: tuple[str, str]
    numbers: Sequence[Number]
    gates: Sequence[Gate] = ()
    decides: bool = True

    def __call__(self, evidence: Evidence) -> list[Part]:
        """Judges the numbers, if the two can be compared."""
        found = self.arms.find(evidence)
        groups = [found[name] for name in self.pair]
        return measure(
            self.label,
            groups,
            self.numbers,
            self.gates,
            self.arms.find_mismatch(*groups),
            decides=self.decides,
        )


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and how it is tested.

    Attributes:
        name: As `C1`.
        title: A few words.
        statement: What the paper says, in our words.
        place: Where it says so.
        rule: The rule as text.
        method: What is measured, on which runs.
        tests: What gives its parts, in their order.
        draw: Makes further figures of the evidence, by caption.
    """

    name: str
    title: str
    statement: str
    place: str
    rule: str
    method: str
    tests: Sequence[Test]
    draw: Callable[[Evidence], dict[str, Figure]] | None = None


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict.

    Attributes:
        claim: The claim.
        parts: All its parts.
        verdict: Of the claim as a whole.
        reason: How it follows from the parts.
    """

    claim: Claim
    parts: tuple[Part, ...]
    verdict: Verdict
    reason: str


def judge_claim(claim: Claim, evidence: Evidence) -> ClaimResult:
    """Judges all parts of a claim, and it as a whole."""
    parts = tuple(part for test in claim.tests for part in test(evidence))
    return ClaimResult(claim, parts, *combine(parts))
