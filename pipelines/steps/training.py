"""Steps `trainer` and `report`: the runs of a profile, and their report."""

from __future__ import annotations

import glob
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.profile import Profile, make_works
from pipelines.steps import place, run_step
from tfcomp.sweeps.pool import SchedulerOptions
from tfcomp.sweeps.sweep_run import Sweep, run_missing

if TYPE_CHECKING:
    from kfp import dsl

    from reproduction.claims import Row


def train(
    profile: str,
    examples_dir: str,
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Artifact,
) -> None:
    """Runs trials and searches that are not finished."""
    with run_step("trainer") as step:
        folder = place(runs, work_dir, "runs")
        works = make_works(Profile.from_json(profile), folder, examples_dir)
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        failures = []
        for work in works:
            print(f"{work.kind} {work.folder.name}", flush=True)
            for line in run_missing(work, options):
                failures.append(f"{work.folder.name} {line}")
        for failure in failures:
            print(f"failed: {failure}")
        number = sum(len(work.items) for work in works)
        step.note = f"trials: {number}, failed: {len(failures)}, in {folder}"


def report(
    profile: str,
    runs_dir: str,
    work_dir: str,
    folder: dsl.Artifact,
    page: str,
) -> None:
    """Writes the report to a folder, and its page once more."""
    with run_step("report") as step:
        output = place(folder, work_dir, "report")
        rows = report_runs(Profile.from_json(profile), runs_dir, output)
        shutil.copyfile(output / "report.html", page)
        counts = Counter(row.holds for row in rows)
        answers = ", ".join(f"{n} {answer}" for answer, n in counts.items())
        step.note = f"claims hold: {answers}: {output / 'report.html'}"


def report_runs(
    profile: Profile,
    runs_dir: str | Path,
    output: Path,
) -> list[Row]:
    """Judges the paper's claims by the runs of a profile, and by no others.

    A folder of runs can also have trials of other flags or of other code. Runs
    of all seeds are judged, not those that claims name.
    """
    import pandas as pd

    from reproduction.claims import Evidence, read_evidence, write_report

    folders: list[Path] = []
    for work in make_works(profile, runs_dir):
        if isinstance(work, Sweep):
            folders += [trial.path for trial in work.items]
        else:
            folders.append(work.folder)
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]

    evidence = Evidence()
    if patterns:
        evidence = read_evidence(patterns, any_seed=True)
    rows = write_report(evidence, output)
    table = pd.read_csv(output / "claims.csv")
    table.to_html(output / "report.html", index=False, na_rep="")
    return rows
