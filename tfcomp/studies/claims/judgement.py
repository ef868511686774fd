"""Claims and how they are judged: rounds of seeds, Holm, controls, badges.

Controls are planted evidence, which passes through the same tests: a positive
one must be reproduced; a negative one must not be, nor the untrained networks
of the same seeds, with open gates. If one misbehaves, the test is not valid.

A claim is judged twice: as the paper states it, by the paper's own quantity on
all runs that are no trials, and by a stricter test of ours.

Rules of version 4 were written after seeds below 300 had been seen: they can
make a verdict of the stricter test weaker, not better than the one of version
3. Where a plan names how many seeds judge a part, of 200 and up (`fresh`) or of
300 and up (`unseen`), these do once all are in; further seeds are not looked
at. Seeds below 100, which all rules were written on, are judged where there are
no others: as a trial.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tfcomp.statistics.verdicts import Verdict
from tfcomp.studies.claims.claim import Checks, Declaration
from tfcomp.studies.claims.controls import Control, ControlOutcome, Kind
from tfcomp.studies.claims.evidence import (
    FIRST,
    FRESH,
    TRIALS,
    UNSEEN,
    Evidence,
)
from tfcomp.studies.claims.parts import (
    Part,
    combine_parts,
    correct_refutations,
    judge_checks,
)
from tfcomp.studies.claims.sentences import describe_parts
from tfcomp.tables.groups import join_groups

IN_PARTS = "in parts"
PLANS = {FRESH: "fresh", UNSEEN: "unseen"}


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and how it is tested (see `claims.toml`).

    Attributes:
        tests: Ours, and the paper's own if it is another.
        quote: The sentence of the paper; empty if the claim is not its.
        paper_rule: The rule of the paper's own test in words.
        stricter: The statement of the stricter test, if it is another.
        doubt: A known fault of the measure, for which nothing is refuted.
        fresh: How many fresh seeds judge the parts whose label begins so.
        unseen: The same of seeds from 300 on.
        is_failure: True for a description of failure, whose control is a
            network trained on all combinations.
        is_one: True if its parts are conditions and not settings, so that no
            part has a verdict of its own.
    """

    name: str
    title: str
    statement: str
    place: str
    rule: str
    method: str
    tests: Declaration
    controls: Sequence[Control] = ()
    fresh: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    quote: str = ""
    paper_rule: str = ""
    stricter: str = ""
    doubt: str = ""
    is_failure: bool = False
    is_one: bool = False

    def judge(self, evidence: Evidence) -> ClaimResult:
        """Judges all parts of the claim, it as a whole, and its test."""
        parts, waits = self._judge_rounds(evidence, self.tests.ours)
        outcomes = (*self._planted, *self._judge_networks(evidence, parts))
        verdict, reason = combine_parts(parts)
        is_seen = any(p.decides and p.round < UNSEEN for p in parts)
        before = [h["verdict"] for h in self.history if h["version"] == 3]
        if (
            is_seen
            and verdict is Verdict.REPRODUCED
            and before not in ([], [verdict])
        ):
            reason = "reproduced on seeds that the rule was written on"
            verdict = Verdict.UNDECIDED
        if is_seen and verdict is Verdict.REFUTED and self.doubt:
            verdict, reason = Verdict.UNDECIDED, self.doubt
        reason = "; ".join(filter(None, [reason, waits]))
        wrong = [outcome for outcome in outcomes if not outcome.is_right]
        if wrong:
            names = ", ".join(f"{o.kind}: {o.name}" for o in wrong)
            reason = f"it fails at controls ({names}), else {verdict}"
            verdict = Verdict.NOT_VALID
        paper = parts if self.quote else ()
        if self.tests.paper:
            paper, _ = self._judge_rounds(evidence, self.tests.paper)
        return ClaimResult(self, parts, verdict, reason, outcomes, paper)

    def _judge_rounds(
        self, evidence: Evidence, checks: Checks
    ) -> tuple[tuple[Part, ...], str]:
        """Returns parts of the last complete round, and a note on others."""
        seen = evidence.rounds[FIRST]
        if not (seen.groups or seen.studies):
            seen = evidence.rounds[TRIALS]
        parts, waits = list(judge_checks(checks, seen)), []
        for number, kind in PLANS.items():
            if number == UNSEEN and checks is self.tests.ours:
                checks = self.tests.unseen or checks
            for start, planned in getattr(self, kind).items():
                limited = evidence.rounds[number].limit(planned)
                found = judge_checks(checks, limited)
                chosen = [p for p in found if p.label.startswith(start)]
                count = min(
                    (p.num_runs for p in chosen if p.decides), default=0
                )
                if count >= planned:
                    parts = [p for p in parts if not p.label.startswith(start)]
                    parts += [replace(part, round=number) for part in chosen]
                elif count or number == FRESH:
                    words = f"{count} of {planned} {kind} seeds are in"
                    waits.append(f"{start}: {words}" if start else words)
        return tuple(correct_refutations(parts)), "; ".join(waits)

    @functools.cached_property
    def _planted(self) -> list[ControlOutcome]:
        """Verdicts on the planted controls."""
        return [
            ControlOutcome(
                c.name,
                c.kind,
                combine_parts(judge_checks(self.tests.ours, c.plant()))[0],
            )
            for c in self.controls
        ]

    def _judge_networks(
        self, evidence: Evidence, parts: Iterable[Part]
    ) -> Iterable[ControlOutcome]:
        """Judges networks that did not learn what the claim is about.

        For a description of failure they were trained on all combinations;
        while these are not run, and for other claims, they are not trained.
        """
        if self.is_failure:
            verdict = self._test(evidence.take_controls())
            yield ControlOutcome("trained on all", Kind.TRAINED, verdict)
            if verdict is not Verdict.NOT_RUN:
                return
        groups = join_groups(group for part in parts for group in part.groups)
        verdict = self._test(Evidence(tuple(g.untrain() for g in groups)))
        if verdict is not Verdict.NOT_RUN:
            yield ControlOutcome("by its number", Kind.UNTRAINED, verdict)

    def _test(self, evidence: Evidence) -> Verdict:
        """Judges what evidence has of the claim, whatever else it requires."""
        parts = judge_checks(self.tests.ours, evidence)
        return combine_parts(p for p in parts if p.estimate)[0]


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict, and the parts that it follows from."""

    claim: Claim
    parts: tuple[Part, ...]
    verdict: Verdict
    reason: str
    controls: tuple[ControlOutcome, ...] = ()
    paper: tuple[Part, ...] = ()

    @property
    def by_part(self) -> dict[Verdict, list[str]]:
        """The settings of the claim by verdict.

        With one verdict if all agree, or if it was limited as a whole.
        """
        found = split_parts(self.parts)
        is_limited = self.verdict is not combine_parts(self.parts)[0]
        is_whole = self.claim.is_one or is_limited
        return {self.verdict: []} if is_whole or len(found) < 2 else found

    @property
    def word(self) -> str:
        """The verdict, or `in parts` if some settings are reproduced."""
        return summarize_verdicts(self.by_part, self.verdict)

    @property
    def badge(self) -> str:
        """The verdict with the settings that it stands for."""
        return describe_verdicts(self.by_part)

    @property
    def meaning(self) -> str:
        """The numbers of the stricter test, by side of its rules."""
        return describe_parts(self.parts)

    @property
    def paper_word(self) -> str:
        """The word of the paper's own statement; empty if it has none."""
        if not self.paper:
            return ""
        if not self.claim.tests.paper:
            return self.word
        verdict, _ = combine_parts(self.paper)
        return summarize_verdicts(split_parts(self.paper), verdict)

    @property
    def paper_badge(self) -> str:
        """The badge of the paper's own statement; empty if it has none."""
        if self.paper and not self.claim.tests.paper:
            return f"{self.badge}; the same test"
        return describe_verdicts(split_parts(self.paper)) if self.paper else ""

    @property
    def paper_meaning(self) -> str:
        """The paper's own numbers, by side of its rule."""
        return describe_parts(self.paper) if self.claim.tests.paper else ""


def summarize_verdicts(found: Mapping[Verdict, Any], verdict: Verdict) -> str:
    """Returns a verdict, or `in parts` if some settings are reproduced."""
    is_split = len(found) > 1 and Verdict.REPRODUCED in found
    return IN_PARTS if is_split else str(verdict)


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
