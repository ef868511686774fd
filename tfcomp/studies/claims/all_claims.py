"""The claims of all experiments, in their order, and their verdicts."""

import functools

from tfcomp.studies.claims.claim import Check
from tfcomp.studies.claims.controls import describe_claim
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import (
    composition,
    data_needed,
    factorization,
    forced_rendering,
    rotated_digits,
    stripe_training,
    volumes,
)
from tfcomp.studies.claims.judgement import Claim, ClaimResult, JudgeParts
from tfcomp.studies.claims.parts import OwnCheck, judge_checks

_EXPERIMENTS = (
    composition,
    factorization,
    volumes,
    forced_rendering,
    stripe_training,
    data_needed,
    rotated_digits,
)
_PICTURES = {k: v for e in _EXPERIMENTS for k, v in e.PICTURES.items()}
_TESTS: dict[str, list[Check | OwnCheck]] = {
    k: v for e in _EXPERIMENTS for k, v in e.TESTS.items()
}
_PAPER = {k: v for e in _EXPERIMENTS for k, v in e.PAPER.items()}


def _make_judge(checks: list[Check | OwnCheck]) -> JudgeParts:
    return functools.partial(judge_checks, checks)


CLAIMS = tuple(
    Claim(
        **describe_claim(name),
        judge_parts=_make_judge(_TESTS[name]),
        judge_paper=_make_judge(_PAPER[name]) if name in _PAPER else None,
        draw=_PICTURES.get(name),
    )
    for name in sorted(_TESTS, key=lambda name: int(name[1:]))
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim, with its controls; see `judgement`."""
    return [claim.judge(evidence) for claim in CLAIMS]
