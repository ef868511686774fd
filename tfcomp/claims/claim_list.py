"""All claims, and their verdicts."""

from __future__ import annotations

from tfcomp.claims import composition
from tfcomp.claims import data_needed
from tfcomp.claims import factorization
from tfcomp.claims import forced_rendering
from tfcomp.claims import rotated_digits as rotation
from tfcomp.claims import stripe_training as stripes
from tfcomp.claims import unit_tuning as tuning
from tfcomp.claims import volumes
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.parts import ClaimResult
from tfcomp.claims.parts import judge_claim

FILES = (
    composition,
    data_needed,
    factorization,
    forced_rendering,
    rotation,
    stripes,
    tuning,
    volumes,
)
CLAIMS = tuple(
    sorted(
        (claim for file in FILES for claim in file.CLAIMS),
        key=lambda claim: int(claim.name[1:]),
    )
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim; those without evidence are `not run`."""
    return [judge_claim(claim, evidence) for claim in CLAIMS]
