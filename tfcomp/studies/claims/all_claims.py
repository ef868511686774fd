"""The claims of all experiments, in their order, and their verdicts.

`CLAIMS` have the rules of version 1, `FRESH_CLAIMS` those of version 2. Their
words and controls are in `claims.toml`, their tests in `experiments/`.
"""

from tfcomp.studies.claims.claim import Claim, ClaimResult
from tfcomp.studies.claims.controls import describe_claim, list_controls
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
from tfcomp.studies.claims.fresh_claim import FreshClaim

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
CLAIMS = tuple(
    Claim(**describe_claim(name, "first"), tests=t, draw=_PICTURES.get(name))
    for name, t in sorted(
        (item for e in _EXPERIMENTS for item in e.TESTS.items()),
        key=lambda item: int(item[0][1:]),
    )
)
FRESH_CLAIMS = tuple(
    FreshClaim(
        **describe_claim(name, "fresh"),
        tests=tests,
        draw=_PICTURES.get(name),
        controls=list_controls(name),
    )
    for name, tests in sorted(
        (item for e in _EXPERIMENTS for item in e.FRESH_TESTS.items()),
        key=lambda item: int(item[0][1:]),
    )
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim by version 1; one without evidence is `not run`."""
    return [claim.judge(evidence) for claim in CLAIMS]


def judge_fresh(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim by version 2, on fresh seeds, with the controls."""
    return [claim.judge(evidence) for claim in FRESH_CLAIMS]
