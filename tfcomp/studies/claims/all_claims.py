"""The claims of all experiments, in their order, and their verdicts.

Their words, rules and controls are in `claims.toml`, their tests in
`experiments/`.
"""

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
from tfcomp.studies.claims.judgement import Claim, ClaimResult

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
    Claim(
        **describe_claim(name),
        tests=tests,
        draw=_PICTURES.get(name),
        controls=list_controls(name),
    )
    for name, tests in sorted(
        (item for e in _EXPERIMENTS for item in e.TESTS.items()),
        key=lambda item: int(item[0][1:]),
    )
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim, with its controls; see `judgement`."""
    return [claim.judge(evidence) for claim in CLAIMS]
