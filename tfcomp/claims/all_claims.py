"""The claims of all experiments, in their order, and their verdicts.

`CLAIMS` have the rules of version 1, `FRESH_CLAIMS` those of version 2.
"""

from __future__ import annotations

from tfcomp.claims.claim import ClaimResult
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments import composition
from tfcomp.claims.experiments import data_needed
from tfcomp.claims.experiments import factorization
from tfcomp.claims.experiments import forced_rendering
from tfcomp.claims.experiments import rotated_digits
from tfcomp.claims.experiments import stripe_training
from tfcomp.claims.experiments import volumes
from tfcomp.claims.fresh import CLAIMS as FRESH_CLAIMS

CLAIMS = (
    *composition.CLAIMS,
    *factorization.CLAIMS,
    *volumes.CLAIMS,
    *forced_rendering.CLAIMS,
    *stripe_training.CLAIMS,
    *data_needed.CLAIMS,
    *rotated_digits.CLAIMS,
)
CLAIMS = tuple(sorted(CLAIMS, key=lambda claim: int(claim.name[1:])))


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim by version 1; one without evidence is `not run`."""
    return [claim.judge(evidence) for claim in CLAIMS]


def judge_fresh(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim by version 2, on fresh seeds, with the controls."""
    return [claim.judge(evidence) for claim in FRESH_CLAIMS]
