"""The claims of all experiments, in their order, and their verdicts."""

from __future__ import annotations

from tfcomp.claims.claim import ClaimResult
from tfcomp.claims.claim import judge_claim
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments import composition
from tfcomp.claims.experiments import data_needed
from tfcomp.claims.experiments import factorization
from tfcomp.claims.experiments import forced_rendering
from tfcomp.claims.experiments import rotated_digits
from tfcomp.claims.experiments import stripe_training
from tfcomp.claims.experiments import unit_tuning
from tfcomp.claims.experiments import volumes

EXPERIMENTS = (
    composition,
    data_needed,
    factorization,
    forced_rendering,
    rotated_digits,
    stripe_training,
    unit_tuning,
    volumes,
)
CLAIMS = tuple(
    sorted(
        (claim for file in EXPERIMENTS for claim in file.CLAIMS),
        key=lambda claim: int(claim.name[1:]),
    )
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim; one without evidence is `not run`."""
    return [judge_claim(claim, evidence) for claim in CLAIMS]
