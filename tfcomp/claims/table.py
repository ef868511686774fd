"""All claims, and their verdicts."""

from __future__ import annotations

from tfcomp.claims import composition
from tfcomp.claims import forced_rendering
from tfcomp.claims import geometry
from tfcomp.claims import rotation
from tfcomp.claims import stripes
from tfcomp.claims import tuning
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.parts import ClaimResult
from tfcomp.claims.parts import judge_claim

CLAIMS = (
    *composition.CLAIMS,
    *geometry.CLAIMS,
    *forced_rendering.CLAIMS,
    *stripes.CLAIMS,
    *tuning.CLAIMS,
    *rotation.CLAIMS,
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim; those without evidence are `not run`."""
    return [judge_claim(claim, evidence) for claim in CLAIMS]
