"""The claims of the paper, judged by finished runs.

    evidence = read_evidence(["tensorboard_logs"])
    results = judge(evidence)
    write_report(evidence, "report")

`claims.toml` has the sentences of the paper, the rules in words, their history
and their controls. The files in `experiments/` declare numbers and rules. The
files beside them select runs, estimate numbers over seeds, compare them with
the rules, and report verdicts.
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
