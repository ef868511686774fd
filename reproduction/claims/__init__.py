"""The claims of the paper, judged by finished runs.

    evidence = read_evidence(["reproduction/evidence"])
    for row in judge_claims(evidence):
        print(row.claim, row.part, row.holds, row.specific)

A claim is one file, `cNN_name.py`: its docstring has the title, the place in
the paper and the quoted sentence, and its function `judge` selects runs, reads
their numbers and yields rows. A new claim is a new file. TensorFlow is not
needed.
"""

from reproduction.claims.evidence import (
    Evidence,
    Networks,
    Reader,
    read_evidence,
)
from reproduction.claims.judge import (
    ALL,
    UNTRAINED,
    Interval,
    Row,
    Rows,
    compare,
)
from reproduction.claims.page import judge_claims, write_report

__all__ = [
    "ALL",
    "UNTRAINED",
    "Evidence",
    "Interval",
    "Networks",
    "Reader",
    "Row",
    "Rows",
    "compare",
    "judge_claims",
    "read_evidence",
    "write_report",
]
