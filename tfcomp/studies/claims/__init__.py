"""The claims of the paper, judged by finished runs.

    evidence = read_evidence(["tensorboard_logs"])
    results = judge_fresh(evidence)  # version 2 of the rules; judge: 1
    write_report(evidence, "report")

What the paper says, the rules in words and the controls of version 2 stand in
`claims.toml`. The files in `experiments/` declare what is measured, by version
1 (`TESTS`) and by version 2 (`FRESH_TESTS`), which judges fresh seeds alone.
The files beside them select the runs that speak for a claim, estimate its
numbers over seeds, compare them with its rules and report the verdicts.
TensorFlow is not needed.
"""

from tfcomp.studies.claims.all_claims import judge, judge_fresh
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
    "judge_fresh",
    "read_evidence",
    "read_some_evidence",
    "write_report",
]
