"""report: the paper's claims, judged by the runs of a pipeline."""

from __future__ import annotations

import glob
from collections import Counter
from pathlib import Path

from pipelines.training import LOGS
from tfcomp.claims import Report
from tfcomp.claims import read_evidence
from tfcomp.claims import write_report


def report_runs(runs_dir: Path, output: Path, profile: str) -> Report:
    """Writes the reproduction report.

    Args:
        runs_dir: Where the trainer wrote.
        output: Folder of the report.
        profile: Name of the profile, for the command that is shown.
    """
    evidence = read_evidence([glob.escape(str(runs_dir / LOGS))])
    command = f"python -m pipelines.run_local --profile={profile}"
    return write_report(evidence, output, command)


def count_verdicts(report: Report) -> dict[str, int]:
    """Number of claims for each verdict that occurs."""
    return dict(Counter(str(result.verdict) for result in report.results))
