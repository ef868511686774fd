"""The paper's claims: evidence from finished runs, rules, verdicts, a report.

    evidence = read_evidence(["tensorboard_logs"])
    results = judge(evidence)
    write_report(evidence, "report")

Needs no TensorFlow.
"""

from tfcomp.claims.claim_list import CLAIMS
from tfcomp.claims.claim_list import judge
from tfcomp.claims.claim_report import Report
from tfcomp.claims.claim_report import write_report
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.evidence import read_evidence
from tfcomp.claims.parts import Claim
from tfcomp.claims.parts import ClaimResult
from tfcomp.claims.parts import Part
from tfcomp.claims.verdict import Verdict

__all__ = [
    "CLAIMS",
    "Claim",
    "ClaimResult",
    "Evidence",
    "Part",
    "Report",
    "Run",
    "Verdict",
    "judge",
    "read_evidence",
    "write_report",
]
