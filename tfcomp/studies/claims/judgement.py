"""Claims and how they are judged: rounds of seeds, Holm, controls, badges.

Controls are planted evidence, which passes through the same tests: a positive
one must be reproduced; a negative one must not be, nor the untrained networks
of the same seeds, with open gates. If one misbehaves, the test is not valid.

Rules of version 3 were written after seeds 100 to 199 had been seen. On these
seeds they can make a verdict weaker, not better than the one of version 2.
Fresh seeds (200 and up) can do both, in one look: when as many are in as
`fresh` says, part by part. Before, nothing is computed of them. Seeds below
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
from tfcomp.studies.claims.evidence import FIRST, FRESH, TRIALS, Evidence
from tfcomp.studies.claims.parts import (
    Part,
    combine_parts,
    correct_refutations,
)
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_PARTS = "in parts"


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and how it is tested (see `claims.toml`).

    Attributes:
        judge_parts: Judges all numbers of some evidence, in their order.
        draw: Makes further figures of the evidence, by caption.
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
    judge_parts: Callable[[Evidence], tuple[Part, ...]]
    draw: Callable[[Evidence], dict[str, Figure]] | None = None
    controls: Sequence[Control] = ()
    fresh: Mapping[str, int] | None = None
    history: Sequence[Mapping[str, Any]] = ()
    means: Mapping[str, str] | None = None
    is_one: bool = False

    def judge(self, evidence: Evidence) -> ClaimResult:
        """Judges all parts of the claim, it as a whole, and its test."""
        seen = evidence.rounds[FIRST]
        if not (seen.groups or seen.studies):
            seen = evidence.rounds[TRIALS]
        parts, waits = self._take_fresh(evidence, self.judge_parts(seen))
        outcomes = (*self._planted, *self._judge_starts(parts))
        verdict, reason = combine_parts(parts)
        is_new = all(p.is_fresh for p in parts if p.decides)
        before = [h["verdict"] for h in self.history if h["version"] == 2]
        if verdict is Verdict.REPRODUCED and not is_new and before:
            verdict = Verdict(before[0])
            if verdict is not Verdict.REPRODUCED:
                reason = "reproduced on seeds that the rule was written on"
        reason = "; ".join(filter(None, [reason, waits]))
        wrong = [outcome for outcome in outcomes if not outcome.is_right]
        if wrong:
            names = ", ".join(f"{o.kind}: {o.name}" for o in wrong)
            reason = f"it fails at controls ({names}), else {verdict}"
            verdict = Verdict.NOT_VALID
        return ClaimResult(self, parts, verdict, reason, outcomes)

    def _take_fresh(
        self, evidence: Evidence, old: tuple[Part, ...]
    ) -> tuple[tuple[Part, ...], str]:
        """Returns parts, fresh where all seeds are in, and what is to come."""
        if not self.fresh:
            return old, ""
        found = self.judge_parts(evidence.rounds[FRESH])
        taken, waits, done = [], [], []
        for start, planned in self.fresh.items():
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

    @property
    def by_part(self) -> dict[Verdict, list[str]]:
        """The settings of the claim by what was found of each.

        With one verdict if all agree, or if it says nothing of any.
        """
        found: dict[Verdict, list[str]] = {}
        deciding = [part for part in self.parts if part.decides]
        for name in dict.fromkeys(part.of or part.label for part in deciding):
            those = [p for p in deciding if (p.of or p.label) == name]
            found.setdefault(combine_parts(those)[0], []).append(name)
        is_whole = self.claim.is_one or self.verdict is Verdict.NOT_VALID
        return {self.verdict: []} if is_whole or len(found) < 2 else found

    @property
    def word(self) -> str:
        """The verdict, or `in parts` if true of some settings: for counts."""
        found = self.by_part
        is_split = len(found) > 1 and Verdict.REPRODUCED in found
        return IN_PARTS if is_split else str(self.verdict)

    @property
    def badge(self) -> str:
        """The verdict with the part that it stands for."""
        return "; ".join(
            f"{verdict} ({', '.join(names)})" if names else str(verdict)
            for verdict, names in self.by_part.items()
        )

    @property
    def meaning(self) -> str:
        """What the verdict says to a reader of the paper, if anything."""
        return (self.claim.means or {}).get(self.word, "")
