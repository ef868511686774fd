"""report: the paper's claims, judged by the runs of a pipeline."""

from __future__ import annotations

import glob
from pathlib import Path

from pipelines.profile import Profile
from pipelines.profile import make_searches
from pipelines.profile import make_sweeps
from pipelines.steps.trainer.executor import LOGS
from tfcomp.claims import Evidence
from tfcomp.claims import Report
from tfcomp.claims import read_evidence
from tfcomp.claims import write_report


def report_runs(profile: Profile, runs_dir: Path, output: Path) -> Report:
    """Writes the reproduction report on the trials of a profile.

    Trials of earlier flags or code may lie beside them where the trainer
    wrote, and are left out.
    """
    folders = list_run_folders(profile, runs_dir)
    patterns = [glob.escape(str(path)) for path in folders]
    evidence = read_evidence(patterns) if patterns else Evidence()
    command = f"python -m pipelines.run_local --profile={profile.name}"
    return write_report(evidence, output, command)


def list_run_folders(profile: Profile, runs_dir: Path) -> list[Path]:
    """Folders of the trials and searches of a profile, as far as they exist."""
    logs = f"--log_dir={runs_dir / LOGS}"
    folders = [
        trial.path
        for sweep in make_sweeps(profile, logs)
        for trial in sweep.trials
    ]
    folders += [part.folder.path for part in make_searches(profile, logs)]
    return [folder for folder in folders if folder.exists()]
