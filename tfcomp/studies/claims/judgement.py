"""Claims and how they are judged: rounds of seeds, Holm, controls, badges.

Controls are planted evidence, which passes through the same tests: a positive
one must be reproduced; a negative one must not be, nor the untrained networks
of the same seeds, with open gates. If one misbehaves, the test is not valid.

A claim is judged twice: as the paper states it, by the paper's own quantity on
all runs that are no trials, and by a stricter test of ours.

Rules of version 4 were written after seeds below 300 had been seen: they can
make a verdict of the stricter test weaker, not better than the one of version
3. Where a plan (`fresh`) names how many seeds of 200 and up judge a part, these
do once all are in, and seeds beyond the plan are not looked at. Seeds below
100, which all rules were written on, are judged where there are no others: as a
trial.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.controls import Control, ControlOutcome, Kind
from tfcomp.studies.claims.evidence import (
    FIRST,
    FRESH,
    TRIALS,
    Evidence,
)
from tfcomp.studies.claims.parts import (
    Part,
    combine_parts,
    correct_refutations,
)
from tfcomp.studies.claims.sentences import describe_parts
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_PARTS = "in parts"
JudgeParts = Callable[[Evidence], tuple[Part, ...]]


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and how it is tested (see `claims.toml`).

    Attributes:
        judge_parts: Judges all numbers of some evidence, in their order.
        draw: Makes further figures of the evidence, by caption.
        judge_paper: Judges the numbers of the paper's own statement, if they
            are others.
        quote: The sentence of the paper; empty if the claim is not its.
        paper_rule: The rule of `judge_paper` in words.
        stricter: The statement of the stricter test, if it is another.
        doubt: A known fault of the measure, for which nothing is refuted.
        fresh: How many fresh seeds judge the parts whose label begins so.
        is_one: Whether its parts are conditions and not settings, so that no
            part has a verdict of its own.
    """

    name: str
    title: str
    statement: str
    place: str
    rule: str
    method: str
    judge_parts: JudgeParts
    draw: Callable[[Evidence], dict[str, Figure]] | None = None
    controls: Sequence[Control] = ()
    fresh: Mapping[str, int] | None = None
    history: Sequence[Mapping[str, Any]] = ()
    judge_paper: JudgeParts | None = None
    quote: str = ""
    paper_rule: str = ""
    stricter: str = ""
    doubt: str = ""
    is_one: bool = False

    def judge(self, evidence: Evidence) -> ClaimResult:
        """Judges all parts of the claim, it as a whole, and its test."""
        seen = evidence.rounds[FIRST]
        if not (seen.groups or seen.studies):
            seen = evidence.rounds[TRIALS]
        parts, waits = self._take_fresh(evidence, seen, self.judge_parts)
        outcomes = (*self._planted, *self._judge_starts(parts))
        verdict, reason = combine_parts(parts)
        before = [h["verdict"] for h in self.history if h["version"] == 3]
        if verdict is Verdict.REPRODUCED and before not in ([], [verdict]):
            reason = "reproduced on seeds that the rule was written on"
            verdict = Verdict.UNDECIDED
        if verdict is Verdict.REFUTED and self.doubt:
            verdict, reason = Verdict.UNDECIDED, self.doubt
        reason = "; ".join(filter(None, [reason, waits]))
        wrong = [outcome for outcome in outcomes if not outcome.is_right]
        if wrong:
            names = ", ".join(f"{o.kind}: {o.name}" for o in wrong)
            reason = f"it fails at controls ({names}), else {verdict}"
            verdict = Verdict.NOT_VALID
        paper = parts if self.quote else ()
        if self.judge_paper is not None:
            paper, _ = self._take_fresh(evidence, seen, self.judge_paper)
        return ClaimResult(self, parts, verdict, reason, outcomes, paper)

    def _take_fresh(
        self, evidence: Evidence, seen: Evidence, judge: JudgeParts
    ) -> tuple[tuple[Part, ...], str]:
        """Returns parts, fresh where all seeds are in, and what is to come."""
        old = judge(seen)
        if not self.fresh:
            return old, ""
        fresh = evidence.rounds[FRESH]
        taken, waits, done = [], [], []
        for start, planned in self.fresh.items():
            found = judge(fresh.limit(planned))
            chosen = [p for p in found if p.label.startswith(start)]
            count = min((p.num_runs for p in chosen if p.decides), default=0)
            if count >= planned:
                done.append(start)
                taken += [replace(part, is_fresh=True) for part in chosen]
            else:
                words = f"{count} of {planned} fresh seeds are in"
                waits.append(f"{start}: {words}" if start else words)
        kept = [p for p in old if not p.label.startswith(tuple(done))]
        return tuple(correct_refutations([*kept, *taken])), "; ".join(waits)

    @functools.cached_property
    def _planted(self) -> list[ControlOutcome]:
        """The verdicts on the controls, which depend on no evidence."""
        return [
            ControlOutcome(
                c.name, c.kind, combine_parts(self.judge_parts(c.plant()))[0]
            )
            for c in self.controls
        ]

    def _judge_starts(self, parts: Iterable[Part]) -> Iterable[ControlOutcome]:
        """Judges the untrained networks, with no gate in their way."""
        found: dict[str, Group] = {}
        for group in (group for part in parts for group in part.groups):
            key = repr(group.flags)
            runs = {**group.runs, **(found[key].runs if key in found else {})}
            found[key] = replace(group, runs=dict(sorted(runs.items())))
        starts = [group.untrain() for group in found.values()]
        # Alone, whatever else the claim requires.
        judged = self.judge_parts(Evidence(tuple(starts)))
        judged = tuple(part for part in judged if part.estimate)
        if any(part.decides for part in judged):
            verdict, _ = combine_parts(judged)
            yield ControlOutcome("by its number", Kind.UNTRAINED, verdict)


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict, and how that follows from its parts."""

    claim: Claim
    parts: tuple[Part, ...]
    verdict: Verdict
    reason: str
    controls: tuple[ControlOutcome, ...] = ()
    paper: tuple[Part, ...] = ()

    @property
    def paper_badge(self) -> str:
        """The verdict on the paper's own statement; empty if it has none."""
        if self.paper and self.claim.judge_paper is None:
            return f"{self.badge}; the same test"
        return describe_verdicts(split_parts(self.paper)) if self.paper else ""

    @property
    def paper_meaning(self) -> str:
        """The paper's own numbers, by side of its rule."""
        is_own = self.claim.judge_paper is not None
        return describe_parts(self.paper) if is_own else ""

    @property
    def by_part(self) -> dict[Verdict, list[str]]:
        """The settings of the claim by what was found of each.

        With one verdict if all agree, or if it says nothing of any.
        """
        found = split_parts(self.parts)
        is_limited = self.verdict is not combine_parts(self.parts)[0]
        is_whole = self.claim.is_one or is_limited
        return {self.verdict: []} if is_whole or len(found) < 2 else found

    @property
    def word(self) -> str:
        """The verdict, or `in parts` if true of some settings: for counts."""
        found = self.by_part
        is_split = len(found) > 1 and Verdict.REPRODUCED in found
        return IN_PARTS if is_split else str(self.verdict)

    @property
    def paper_word(self) -> str:
        """The same of the paper's own statement; empty if it has none."""
        if self.paper and self.claim.judge_paper is None:
            return self.word
        if not self.paper:
            return ""
        found = split_parts(self.paper)
        is_split = len(found) > 1 and Verdict.REPRODUCED in found
        return IN_PARTS if is_split else str(combine_parts(self.paper)[0])

    @property
    def badge(self) -> str:
        """The verdict with the part that it stands for."""
        return describe_verdicts(self.by_part)

    @property
    def meaning(self) -> str:
        """What the numbers of the stricter test are, by side of its rules."""
        return describe_parts(self.parts)


def split_parts(parts: Sequence[Part]) -> dict[Verdict, list[str]]:
    """Returns the settings of deciding parts by verdict, if they differ."""
    found: dict[Verdict, list[str]] = {}
    deciding = [part for part in parts if part.decides]
    for name in dict.fromkeys(part.of or part.label for part in deciding):
        alike = [p for p in deciding if (p.of or p.label) == name]
        found.setdefault(combine_parts(alike)[0], []).append(name)
    return found if len(found) > 1 else {v: [] for v in found}


def describe_verdicts(found: Mapping[Verdict, Sequence[str]]) -> str:
    """Returns verdicts with the settings that they stand for."""
    return "; ".join(
        f"{verdict} ({', '.join(names)})" if names else str(verdict)
        for verdict, names in found.items()
    )
