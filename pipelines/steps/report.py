"""Judges the paper's claims by the runs of a pipeline."""

import glob
import shutil
from collections import Counter
from pathlib import Path

from kfp import dsl

from pipelines.profile import Profile, make_searches, make_sweeps, parse_profile
from pipelines.running_step import RunningStep
from pipelines.steps.trainer import LOGS
from tfcomp.studies.claims import Evidence, Report, read_evidence, write_report


def judge_runs(
    step: RunningStep,
    profile: str,
    runs: dsl.Artifact,
    folder: dsl.Artifact,
    page: dsl.HTML,
) -> None:
    """Writes the report, and counts the claims by verdict."""
    written = report_runs(
        parse_profile(profile), Path(runs.path), Path(folder.path)
    )
    shutil.copyfile(written.page, page.path)
    counts = Counter(result.word for result in written.results)
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    step.note = f"{verdicts}: {written.page}"


def report_runs(profile: Profile, runs_dir: Path, output: Path) -> Report:
    """Writes the report on the trials of a profile alone."""
    logs = f"--log_dir={runs_dir / LOGS}"
    sweeps, searches = make_sweeps(profile, logs), make_searches(profile, logs)
    folders = [trial.path for sweep in sweeps for trial in sweep.items]
    folders += [search.folder for search in searches]
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]
    evidence = read_evidence(patterns) if patterns else Evidence()
    command = f"python -m pipelines.run_local --profile={profile.name}"
    return write_report(evidence, output, command)
