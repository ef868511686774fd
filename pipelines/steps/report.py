"""Judges the paper's claims by the runs of a pipeline."""

import glob
from pathlib import Path

from pipelines.profile import make_searches, make_sweeps, parse_profile
from pipelines.steps.trainer import LOGS
from tfcomp.studies.claims import Evidence, Report, read_evidence, write_report


def report_runs(profile: str, runs_dir: Path, output: Path) -> Report:
    """Writes the report on the trials of a profile alone."""
    parsed, logs = parse_profile(profile), f"--log_dir={runs_dir / LOGS}"
    sweeps, searches = make_sweeps(parsed, logs), make_searches(parsed, logs)
    folders = [trial.path for sweep in sweeps for trial in sweep.items]
    folders += [search.folder for search in searches]
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]
    evidence = read_evidence(patterns) if patterns else Evidence()
    command = f"python -m pipelines.run_local --profile={parsed.name}"
    return write_report(evidence, output, command)
