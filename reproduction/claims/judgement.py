"""Claims and how they are judged: rounds of seeds, Holm, controls, badges.

Controls are planted evidence, which passes through the same tests: a positive
one must be reproduced; a negative one must not be, nor the untrained networks
of the same seeds, with open gates. If one misbehaves, the test is not valid.

A claim is judged twice: as the paper states it, by the paper's own quantity on
all runs that are no trials, and by a stricter test of ours. Where a plan names
how many seeds judge a part, of 200 and up (`fresh`) or of 300 and up
(`unseen`), these do once all are in; further seeds are not looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reproduction.claims import result_text
from reproduction.claims.claim import Checks
from reproduction.claims.controls import Control, ControlOutcome, Kind
from reproduction.claims.evidence import (
    FIRST,
    FRESH,
    TRIALS,
    UNSEEN,
    UNSEEN_SEED,
    Evidence,
)
from reproduction.claims.parts import (
    Part,
    combine_parts,
    correct_refutations,
    judge_checks,
)
from reproduction.claims.result_text import PLANS, Verdicts
from reproduction.groups import join_groups
from reproduction.verdicts import Verdict


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and how it is tested (see `claims.toml`)."""

    name: str
    title: str
    statement: str
    place: str
    rule: str
    method: str
    tests: Checks
    paper_tests: Checks = ()  # empty if the same, as the next
    unseen_tests: Checks = ()  # of seeds from 300 on
    controls: Sequence[Control] = ()
    # How many seeds judge the parts whose label begins so, by `PLANS`.
    fresh: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    quote: str = ""  # empty if the claim is not the paper's
    paper_rule: str = ""  # of the paper's own test, in words
    stricter: str = ""  # the statement of the stricter test, if another
    doubt: str = ""  # a known fault of the measure: nothing is refuted
    is_failure: bool = False  # its control is trained on all combinations
    is_one: bool = False  # parts are conditions, without verdicts of their own

    def judge(self, evidence: Evidence) -> ClaimResult:
        """Judges all parts of the claim, it as a whole, and its test."""
        parts, waits = self._judge_rounds(evidence, self.tests)
        verdict, reason = self._limit(parts, *combine_parts(parts))
        reason = "; ".join(filter(None, [reason, waits]))
        outcomes = (*self._planted, *self._judge_networks(evidence, parts))
        wrong = [f"{o.kind}: {o.name}" for o in outcomes if not o.is_right]
        if wrong:
            reason = (
                f"it fails at controls ({', '.join(wrong)}), else {verdict}"
            )
            verdict = Verdict.NOT_VALID
        paper = parts if self.quote else []
        if self.paper_tests:
            paper, _ = self._judge_rounds(evidence, self.paper_tests)
        return ClaimResult(self, parts, verdict, reason, outcomes, paper)

    def _limit(
        self, parts: Sequence[Part], verdict: Verdict, reason: str
    ) -> tuple[Verdict, str]:
        """Weakens a verdict on seeds that its rule was written on."""
        is_seen = any(p.decides and p.round < UNSEEN for p in parts)
        before = [h["verdict"] for h in self.history if h["version"] == 3]
        # Other numbers may judge unseen seeds, without the fault.
        is_doubted = self.doubt and (is_seen or not self.unseen_tests)
        if is_doubted and verdict is Verdict.REFUTED:
            return Verdict.UNDECIDED, self.doubt
        is_new = before not in ([], [verdict])
        if is_seen and verdict is Verdict.REPRODUCED and is_new:
            reason = "reproduced on seeds that the rule was written on"
            return Verdict.UNDECIDED, reason
        return verdict, reason

    def _judge_rounds(
        self, evidence: Evidence, checks: Checks
    ) -> tuple[list[Part], str]:
        """Returns parts of the last complete round, and a note on others."""
        seen = evidence.rounds[FIRST]
        if not (seen.groups or seen.studies):
            seen = evidence.rounds[TRIALS]
        parts, waits = judge_checks(checks, seen), []
        for number, kind in PLANS.items():
            if number == UNSEEN and checks is self.tests:
                checks = self.unseen_tests or checks
            for start, planned in getattr(self, kind).items():
                limited = evidence.rounds[number].limit(planned)
                found = judge_checks(checks, limited)
                chosen = [p for p in found if p.label.startswith(start)]
                before = [p for p in parts if p.label.startswith(start)]
                counts = [p.num_runs for p in chosen if p.decides] or [0]
                # A series may lack settings that have no run yet.
                is_whole = _count_settings(chosen) >= _count_settings(before)
                count = min(counts) if is_whole else 0
                if count >= planned:
                    parts = [p for p in parts if not p.label.startswith(start)]
                    parts += [replace(part, round=number) for part in chosen]
                elif any(counts) or number == FRESH:
                    words = f"{count} of {planned} {kind} seeds are in"
                    waits.append(f"{start}: {words}" if start else words)
        return correct_refutations(parts), "; ".join(waits)

    @functools.cached_property
    def _planted(self) -> list[ControlOutcome]:
        return [
            ControlOutcome(c.name, c.kind, self._test(c.plant(), whole=True))
            for c in self.controls
        ]

    def _judge_networks(
        self, evidence: Evidence, parts: Iterable[Part]
    ) -> Iterator[ControlOutcome]:
        """Judges control networks: trained on all, or else untrained ones."""
        if self.is_failure:
            verdict = self._test(evidence.take_controls())
            yield ControlOutcome("trained on all", Kind.TRAINED, verdict)
            if verdict is not Verdict.NOT_RUN:
                return
        groups = join_groups(group for part in parts for group in part.groups)
        verdict = self._test(Evidence(tuple(g.untrain() for g in groups)))
        if verdict is not Verdict.NOT_RUN:
            yield ControlOutcome("by its number", Kind.UNTRAINED, verdict)

    def _test(self, evidence: Evidence, whole: bool = False) -> Verdict:
        """Judges the parts with enough seeds, or the whole claim."""
        seeds = [seed for group in evidence.groups for seed in group.seeds]
        is_unseen = min(seeds, default=0) >= UNSEEN_SEED
        checks = is_unseen and self.unseen_tests or self.tests
        parts = judge_checks(checks, evidence)
        return combine_parts(p for p in parts if whole or p.has_enough)[0]


def _count_settings(parts: Iterable[Part]) -> int:
    return len({part.of for part in parts if part.decides and part.num_runs})


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict, and the parts that it follows from."""

    claim: Claim
    parts: Sequence[Part]
    verdict: Verdict
    reason: str
    controls: Sequence[ControlOutcome] = ()
    paper: Sequence[Part] = ()

    @property
    def by_part(self) -> Verdicts:
        """The settings by verdict; one if all agree or it was limited."""
        is_limited = self.verdict is not combine_parts(self.parts)[0]
        if self.claim.is_one or is_limited or not self.parts:
            return {self.verdict: []}
        return result_text.split_parts(self.parts)

    @property
    def word(self) -> str:
        """The verdict, or `in parts` if some settings are reproduced."""
        return result_text.summarize_verdicts(self.by_part)

    @property
    def badge(self) -> str:
        """The verdict with the settings that it stands for."""
        return result_text.describe_verdicts(self.by_part)

    @property
    def meaning(self) -> str:
        """The numbers of the stricter test, by side of its rules."""
        return result_text.describe_parts(self.parts)

    @property
    def _paper_by_part(self) -> Verdicts:
        if not self.claim.paper_tests:
            return self.by_part if self.paper else {}
        return result_text.split_parts(self.paper)

    @property
    def paper_word(self) -> str:
        """The word of the paper's own statement; empty if it has none."""
        return result_text.summarize_verdicts(self._paper_by_part)

    @property
    def paper_badge(self) -> str:
        """The badge of the paper's own statement; empty if it has none."""
        badge = result_text.describe_verdicts(self._paper_by_part)
        is_same = badge and not self.claim.paper_tests
        return f"{badge}; the same test" if is_same else badge

    @property
    def own_paper(self) -> Sequence[Part]:
        """The parts of the paper's own test; empty if it is the same."""
        return self.paper if self.claim.paper_tests else ()

    @property
    def paper_meaning(self) -> str:
        """The paper's own numbers, by side of its rule."""
        return result_text.describe_parts(self.own_paper)
