"""Claims and their parts: what is said, what was measured, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import TYPE_CHECKING

from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import MIN_SEEDS
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import Rule
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import decide

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Part:
    """One number of a claim, judged by one rule.

    Attributes:
        label: Of which runs, as `donut, bump`.
        quantity: What the number is, with its unit.
        estimate: The number; None if there is none.
        rule: What the claim says of it.
        verdict: Computed from the two.
        reason: Why, where it is not plain.
        groups: The runs behind it, one group for each setting.
        note: What else is to be said.
        decides: Whether it counts for the claim; otherwise it is shown
            beside it.
        required: Whether the claim stays undecided without it.
    """

    label: str
    quantity: str
    estimate: Estimate | None
    rule: Rule
    verdict: Verdict
    reason: str = ""
    groups: tuple[Group, ...] = ()
    note: str = ""
    decides: bool = True
    required: bool = True

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs behind it."""
        return tuple(run for group in self.groups for run in group.runs)

    @property
    def differences(self) -> tuple[str, ...]:
        """From the published setting, and what else is to be said."""
        found = [d for group in self.groups for d in group.differences]
        return tuple(dict.fromkeys([*found, *filter(None, [self.note])]))


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
        judge: Evidence to parts.
        draw: Evidence and parts to further figures, by caption.
    """

    name: str
    title: str
    statement: str
    place: str
    rule: str
    method: str
    judge: Callable[[Evidence], list[Part]]
    draw: Callable[[Evidence, Sequence[Part]], dict[str, Figure]] | None = None


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


def make_part(
    label: str,
    quantity: str,
    estimate: Estimate | None,
    rule: Rule,
    *,
    groups: Sequence[Group] = (),
    is_run: bool = False,
    note: str = "",
    problem: str = "",
    decides: bool = True,
    required: bool = True,
) -> Part:
    """Judges one number.

    Args:
        label: Of which runs.
        quantity: What the number is, with its unit.
        estimate: The number.
        rule: What the claim says of it.
        groups: The runs behind it.
        is_run: Whether it was tried, where no runs show it.
        note: What else is to be said.
        problem: Why the runs prove nothing, as `not fitted: ...`; the part
            is undecided then, whatever the number.
        decides: See `Part`.
        required: See `Part`.
    """
    verdict, reason = decide(estimate, rule)
    is_run = is_run or bool(groups) and all(g.runs for g in groups)
    if verdict is Verdict.NOT_RUN and is_run:
        # There are runs, but not this number of them.
        verdict, reason = Verdict.UNDECIDED, "the runs lack this number"
    problem = problem or _find_versions(estimate)
    has_seeds = estimate is None or estimate.count >= MIN_SEEDS
    if problem and has_seeds and verdict is not Verdict.NOT_RUN:
        verdict, reason = Verdict.UNDECIDED, problem
    return Part(
        label,
        quantity,
        estimate,
        rule,
        verdict,
        reason,
        tuple(groups),
        note,
        decides,
        required,
    )


def beside(part: Part) -> Part:
    """The part shown beside the claim, without a say in its verdict."""
    return replace(part, decides=False, required=False)


def combine(parts: Sequence[Part]) -> tuple[Verdict, str]:
    """The verdict on a claim that says all of its deciding parts.

    A false part makes it false. It is reproduced if every part that was run
    is, and every required part was run.

    Returns:
        The verdict and how it follows from the parts.
    """
    deciding = [part for part in parts if part.decides]
    run = [part for part in deciding if part.verdict is not Verdict.NOT_RUN]
    if not run:
        return Verdict.NOT_RUN, "no run that it needs was found"
    counts = {
        verdict: sum(part.verdict is verdict for part in deciding)
        for verdict in Verdict
    }
    total = len(deciding)
    reason = ", ".join(
        f"{count} of {total} {verdict}"
        for verdict, count in counts.items()
        if count
    )
    missing = any(p.required and p.verdict is Verdict.NOT_RUN for p in deciding)
    if counts[Verdict.REFUTED]:
        return Verdict.REFUTED, reason
    if counts[Verdict.UNDECIDED] or missing:
        return Verdict.UNDECIDED, reason
    return Verdict.REPRODUCED, reason


def judge_claim(claim: Claim, evidence: Evidence) -> ClaimResult:
    """Judges all parts of a claim, and it as a whole."""
    parts = tuple(claim.judge(evidence))
    return ClaimResult(claim, parts, *combine(parts))


def _find_versions(estimate: Estimate | None) -> str:
    if estimate is None or len(estimate.versions) < 2:
        return ""
    return (
        "measured by several versions of the code: run python -m tfcomp.measure"
    )
