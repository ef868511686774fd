"""Claims under version 2 of the rules: fresh seeds, Holm, and controls.

The rules were fixed before the seeds that they judge were run, so that only
seeds from 100 to 199 have a say. A rule must recognize what it claims to see:
its controls are planted evidence, which passes through the same tests. A
positive one must be reproduced; a negative one must not be, nor the untrained
networks of the same seeds. If one misbehaves, the test is not valid.
Where nothing but the gate stops an untrained network, the report says so: its
faint outputs have several peaks, for instance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tfcomp.studies.claims.claim import Claim, ClaimResult
from tfcomp.studies.claims.controls import (
    FIRST_SEED,
    NEXT_SEED,
    Control,
    ControlOutcome,
    Kind,
)
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.verdict import (
    Part,
    Verdict,
    combine,
    correct_refutations,
)


@dataclass(frozen=True)
class FreshClaim(Claim):
    """A claim that is judged by version 2 of its rule."""

    controls: Sequence[Control] = ()

    def judge(self, evidence: Evidence) -> ClaimResult:
        """Judges fresh seeds, and the test itself by its controls."""
        parts = self._judge_parts(select_fresh(evidence))
        outcomes = tuple(self._run_controls(parts))
        verdict, reason = combine(parts)
        wrong = [outcome for outcome in outcomes if not outcome.is_right]
        if wrong:
            names = ", ".join(f"{o.kind}: {o.name}" for o in wrong)
            reason = f"it fails at controls ({names}), else {verdict}"
            verdict = Verdict.NOT_VALID
        return ClaimResult(self, parts, verdict, reason, outcomes)

    def _judge_parts(self, evidence: Evidence) -> tuple[Part, ...]:
        parts = [part for test in self.tests for part in test(evidence)]
        return tuple(correct_refutations(parts))

    def _run_controls(self, parts: Iterable[Part]) -> Iterable[ControlOutcome]:
        for control in self.controls:
            verdict, _ = combine(self._judge_parts(control.plant()))
            yield ControlOutcome(control.name, control.kind, verdict)
        runs = {run.path: run for part in parts for run in part.runs}
        yield from self._judge_starts(list(runs.values()))

    def _judge_starts(self, runs: Sequence[Run]) -> Iterable[ControlOutcome]:
        """The untrained networks, of which a gate may be what stops them."""
        found = self._judge_parts(Evidence(tuple(map(untrain, runs))))
        # Alone, whatever else the claim requires.
        found = tuple(part for part in found if part.estimate)
        if not any(part.decides for part in found):
            return
        verdict, _ = combine(found)
        name = "by its number"
        if verdict is Verdict.REPRODUCED:
            gated = self._judge_parts(Evidence(tuple(r.start for r in runs)))
            verdict, _ = combine([p for p in gated if p.estimate or p.problem])
            name = "by the gate alone: its number passes"
        yield ControlOutcome(name, Kind.UNTRAINED, verdict)


def select_fresh(evidence: Evidence) -> Evidence:
    """The runs and searches of seeds that no rule was written on.

    Later ones are those of the rules that come next: to look at them here
    would be one look more than these rules allow.
    """
    seeds = range(FIRST_SEED, NEXT_SEED)
    return Evidence(
        tuple(run for run in evidence.runs if run.seed in seeds),
        tuple(
            study
            for study in evidence.studies
            if len(study.thresholds)
            and study.thresholds["seed"].isin(seeds).all()
        ),
    )


def untrain(run: Run) -> Run:
    """A run with the measures of its start, and no gate in their way."""
    return replace(run.start, metrics={"id": run.metrics.get("id", {})})
