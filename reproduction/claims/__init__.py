"""The claims of the paper, judged by finished runs.

    evidence = read_evidence(["tensorboard_logs"])
    results = judge(evidence)
    write_report(evidence, "report")

`claims.toml` declares each claim: the sentence of the paper, its numbers and
rules, their history and controls. `cases` says which runs a claim is about;
`judgement` follows a claim from its numbers to its verdict. TensorFlow is not
needed.
"""

from reproduction.claims.all_claims import judge
from reproduction.claims.command import Report, write_report
from reproduction.claims.evidence import Evidence, read_evidence

__all__ = ["Evidence", "Report", "judge", "read_evidence", "write_report"]
