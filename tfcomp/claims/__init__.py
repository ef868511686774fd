"""The claims of the paper, judged by finished runs.

    evidence = read_evidence(["tensorboard_logs"])
    results = judge(evidence)
    write_report(evidence, "report")

The files in `experiments/` declare the claims; those beside it select the runs
that speak for a claim, estimate its numbers over seeds, compare them with its
rules and report the verdicts. TensorFlow is not needed.
"""

from tfcomp.claims.all_claims import judge
from tfcomp.claims.claim_report import Report
from tfcomp.claims.claim_report import write_report
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import read_evidence

__all__ = ["Evidence", "Report", "judge", "read_evidence", "write_report"]
