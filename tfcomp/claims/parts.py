"""The parts of a claim: what was measured, by which rule, with what verdict."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from tfcomp.claims.evidence import Run
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import MIN_SEEDS
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import decide

MIXED = "measured by several versions of the code: run python -m tfcomp.measure"


@dataclass(frozen=True)
class Part:
    """One number of a claim, judged by one rule.

    Attributes:
        label: Of which runs, as `donut, bump`.
        quantity: What the number is, with its unit.
        estimate: The number; None if there is none.
        rule: What the claim says of it.
        groups: The runs behind it, one group for each setting.
        note: What else is to be said.
        problem: Why the runs prove nothing, as `not fitted: ...`; the part is
            undecided then, whatever the number.
        is_run: Whether it was tried, where no runs show it.
        decides: Whether it counts for the claim; otherwise it only supports
            it, and the report shows it in grey.
        required: Whether the claim stays undecided without it.
    """

    label: str
    quantity: str
    estimate: Estimate | None
    rule: Rule
    groups: Sequence[Group] = ()
    note: str = ""
    problem: str = ""
    is_run: bool = False
    decides: bool = True
    required: bool = True

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
        """All runs behind it."""
        return tuple(run for group in self.groups for run in group.runs)

    @property
    def differences(self) -> tuple[str, ...]:
        """From the published setting, and what else is to be said."""
        found = [d for group in self.groups for d in group.differences]
        return tuple(dict.fromkeys([*found, *filter(None, [self.note])]))

    @functools.cached_property
    def _judgement(self) -> tuple[Verdict, str]:
        verdict, reason = decide(self.estimate, self.rule)
        is_run = self.groups and all(group.runs for group in self.groups)
        if verdict is Verdict.NOT_RUN:
            # There may be runs, but not this number of them.
            if not (is_run or self.is_run):
                return verdict, reason
            verdict, reason = Verdict.UNDECIDED, "the runs lack this number"
        versions = self.estimate.versions if self.estimate else ()
        problem = self.problem or (MIXED if len(versions) > 1 else "")
        has_seeds = self.estimate is None or self.estimate.count >= MIN_SEEDS
        if problem and has_seeds:
            return Verdict.UNDECIDED, problem
        return verdict, reason


def combine(parts: Sequence[Part]) -> tuple[Verdict, str]:
    """The verdict on a claim that says all of its deciding parts.

    A false part makes it false. It is reproduced if every part that was run
    is, and every required part was run.

    Returns:
        The verdict and how it follows from the parts.
    """
    deciding = [part for part in parts if part.decides]
    if all(part.verdict is Verdict.NOT_RUN for part in deciding):
        return Verdict.NOT_RUN, "no run that it needs was found"
    counts = {
        verdict: sum(part.verdict is verdict for part in deciding)
        for verdict in Verdict
    }
    reason = ", ".join(
        f"{count} of {len(deciding)} {verdict}"
        for verdict, count in counts.items()
        if count
    )
    missing = any(p.required and p.verdict is Verdict.NOT_RUN for p in deciding)
    if counts[Verdict.REFUTED]:
        return Verdict.REFUTED, reason
    if counts[Verdict.UNDECIDED] or missing:
        return Verdict.UNDECIDED, reason
    return Verdict.REPRODUCED, reason
