"""The claims of all experiments, in their order, and their verdicts."""

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
from tfcomp.studies.claims.judgement import Claim, ClaimResult

_TESTS = {
    **composition.CLAIMS,
    **factorization.CLAIMS,
    **volumes.CLAIMS,
    **forced_rendering.CLAIMS,
    **stripe_training.CLAIMS,
    **data_needed.CLAIMS,
    **rotated_digits.CLAIMS,
}
CLAIMS = tuple(
    Claim(**describe_claim(name), tests=_TESTS[name])
    for name in sorted(_TESTS, key=lambda name: int(name[1:]))
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim, with its controls; see `judgement`."""
    return [claim.judge(evidence) for claim in CLAIMS]
