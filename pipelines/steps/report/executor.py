"""report: the paper's claims, judged by the runs of a pipeline."""

from __future__ import annotations

import glob
from pathlib import Path

from pipelines.profile import Profile, make_searches, make_sweeps
from pipelines.steps.trainer.executor import LOGS
from tfcomp.studies.claims import Evidence, Report, read_evidence, write_report


def report_runs(profile: Profile, runs_dir: Path, output: Path) -> Report:
    """Writes the reproduction report on the trials of a profile.

    Trials of earlier flags or code may lie beside them where the trainer
    wrote, and are left out.
    """
    logs = f"--log_dir={runs_dir / LOGS}"
    sweeps, searches = make_sweeps(profile, logs), make_searches(profile, logs)
    folders = [trial.path for sweep in sweeps for trial in sweep.items]
    folders += [search.folder for search in searches]
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]
    evidence = read_evidence(patterns) if patterns else Evidence()
    command = f"python -m pipelines.run_local --profile={profile.name}"
    return write_report(evidence, output, command)
