"""The claims of the paper, judged by finished runs.

    evidence = read_evidence(["tensorboard_logs"])
    results = judge(evidence)
    write_report(evidence, "report")

What the paper says, the rules in words, their history and their controls stand
in `claims.toml`. The files in `experiments/` declare what is measured.
The files beside them select the runs that speak for a claim, estimate its
numbers over seeds, compare them with its rules and report the verdicts.
TensorFlow is not needed.
"""

from tfcomp.studies.claims.all_claims import judge
from tfcomp.studies.claims.claim_report import Report, write_report
from tfcomp.studies.claims.evidence import (
    Evidence,
    read_evidence,
    read_some_evidence,
)

__all__ = [
    "Evidence",
    "Report",
    "judge",
    "read_evidence",
    "read_some_evidence",
    "write_report",
]
