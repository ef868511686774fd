"""Judges the paper's claims by the runs of a pipeline."""

from __future__ import annotations

import glob
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.profile import make_works, parse_profile
from pipelines.running_step import place, run_step
from pipelines.steps.trainer import LOGS
from tfcomp.studies.claims import Evidence, Report, read_evidence, write_report
from tfcomp.sweeps.sweep_run import Sweep

if TYPE_CHECKING:
    from kfp import dsl


def run(
    profile: str,
    runs_dir: str,
    work_dir: str,
    folder: dsl.Artifact,
    page: str,
) -> None:
    """Writes the report to a folder, and its page once more."""
    with run_step("report") as step:
        output = place(folder, work_dir, "report")
        written = report_runs(profile, Path(runs_dir), output)
        shutil.copyfile(written.page, page)
        counts = Counter(result.word for result in written.results)
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        step.note = f"{verdicts}: {written.page}"


def report_runs(profile: str, runs_dir: Path, output: Path) -> Report:
    """Writes the report on the trials of a profile alone."""
    parsed = parse_profile(profile)
    folders: list[Path] = []
    for work in make_works(parsed, f"--log_dir={runs_dir / LOGS}"):
        is_sweep = isinstance(work, Sweep)
        folders += [t.path for t in work.items] if is_sweep else [work.folder]
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]
    evidence = read_evidence(patterns) if patterns else Evidence()
    command = f"python -m pipelines.run_local --profile={parsed.name}"
    return write_report(evidence, output, command)
