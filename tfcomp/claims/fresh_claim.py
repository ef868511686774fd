"""Claims under version 2 of the rules: fresh seeds, Holm, and controls.

The rules were fixed before the seeds that they judge were run, so that only
seeds from 100 on have a say. A rule must recognize what it claims to see: its
controls are planted evidence, which passes through the same tests. A positive
one must be reproduced; a negative one must not be, nor the untrained networks
of the same seeds. If one misbehaves, the test is not valid, whatever it says.
Where nothing but the gate stops an untrained network, the report says so: its
faint outputs have several peaks, for instance.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
from pathlib import Path

from tfcomp.claims.claim import Claim
from tfcomp.claims.claim import ClaimResult
from tfcomp.claims.claim import Test
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.selection import Setting
from tfcomp.claims.verdict import Part
from tfcomp.claims.verdict import Verdict
from tfcomp.claims.verdict import combine
from tfcomp.claims.verdict import correct_refutations

Value = float | Sequence[float]
Scores = Mapping[str, Value | Callable[[int], Value]]
FIRST_SEED = 100
NUM_PLANTED = 10


class Kind(enum.StrEnum):
    """What a control is, and so what its verdict must be."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNTRAINED = "untrained"


@dataclass(frozen=True)
class Control:
    """Planted evidence on a claim.

    Attributes:
        name: What is planted, as `true composers`.
        kind: Whether the claim is true of it.
        plant: Makes the evidence.
    """

    name: str
    kind: Kind
    plant: Callable[[], Evidence]


@dataclass(frozen=True)
class ControlOutcome:
    """What a test said of a control."""

    name: str
    kind: Kind
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        """Whether the test passed what it must, or stopped what it must."""
        is_passed = self.verdict is Verdict.REPRODUCED
        return is_passed == (self.kind is Kind.POSITIVE)


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


def revise(
    claim: Claim,
    rule: str,
    tests: Sequence[Test],
    method: str = "",
    controls: Sequence[Control] = (),
) -> FreshClaim:
    """A claim of version 1 under the rule of version 2."""
    shared = {f.name: getattr(claim, f.name) for f in fields(Claim)}
    changed = {"rule": rule, "tests": tests, "method": method or claim.method}
    return FreshClaim(**(shared | changed), controls=controls)


def select_fresh(evidence: Evidence) -> Evidence:
    """The runs and searches of seeds that no rule was written on."""
    return Evidence(
        tuple(run for run in evidence.runs if run.seed >= FIRST_SEED),
        tuple(
            study
            for study in evidence.studies
            if len(study.thresholds)
            and study.thresholds["seed"].min() >= FIRST_SEED
        ),
    )


def untrain(run: Run) -> Run:
    """A run with the measures of its start, and no gate in their way."""
    return replace(run.start, metrics={"id": run.metrics.get("id", {})})


def plant(
    name: str,
    kind: Kind,
    *planted: tuple[Setting, Scores],
    spread: float = 0.01,
) -> Control:
    """A control of runs of published settings, at fresh seeds.

    Args:
        name: What is planted.
        kind: Whether the claim is true of it.
        *planted: Settings, and numbers by the names that claims read;
            `start/<name>` is of the untrained network. A list has a number
            for every stage, from the code to the image; a function gives
            that of a seed.
        spread: How much seeds differ, relative to the numbers.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + NUM_PLANTED)

    def make() -> Evidence:
        return Evidence(
            tuple(
                _plant_run(setting, seed, scores, spread)
                for setting, scores in planted
                for seed in seeds
            )
        )

    return Control(name, kind, make)


def _plant_run(
    setting: Setting, seed: int, scores: Scores, spread: float
) -> Run:
    factor = 1 + spread * (seed - FIRST_SEED - NUM_PLANTED / 2)
    metrics: dict = {"id": {"relative_mse": 1e-3, "position_accuracy": 1.0}}
    measures: dict = {"version": "planted"}
    for name, planted in scores.items():
        value = planted(seed) if callable(planted) else planted
        if isinstance(value, int | float):
            value = value * factor
        else:
            value = [number * factor for number in value]
            stages = [f"stage_{place - 1}" for place in range(len(value))]
            measures["stages"] = ["code", *stages[1:-1], "image"]
        split, _, last = name.rpartition("/")
        target = measures if split in ("", "start") else metrics
        (target.setdefault(split, {}) if split else target)[last] = value
    must = {n: v for n, v in setting.must.items() if not callable(v)}
    flags = {**setting.reference, **must, "seed": seed}
    return Run(Path(f"/planted/{id(setting)}/{seed}"), flags, metrics, measures)
