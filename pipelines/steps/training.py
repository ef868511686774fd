"""Steps `trainer` and `report`: the runs of a profile, and their report."""

from __future__ import annotations

import glob
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.profile import make_works, parse_profile
from pipelines.steps import place, run_step
from tfcomp.config.quiet import start_tensorflow
from tfcomp.storage.files import read_json
from tfcomp.storage.output_folders import list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_run import Sweep

if TYPE_CHECKING:
    from kfp import dsl

    from reproduction.claims import Report

# Folders of runs and of SavedModels in the output of the trainer.
LOGS = "logs"
MODELS = "saved_models"


def train(
    profile: str,
    examples_dir: str,
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Artifact,
) -> None:
    """Runs trials and searches that are not finished."""
    from reproduction.plans import run_all

    with run_step("trainer") as step:
        folder = place(runs, work_dir, "runs")
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        places = f"--log_dir={folder / LOGS}", f"--export_dir={folder / MODELS}"
        works = make_works(parse_profile(profile), *places, data=examples_dir)
        failures = run_all(works, options)
        for failure in failures:
            print(f"failed: {failure}")
        number = sum(len(work.items) for work in works)
        step.note = f"trials: {number}, failed: {len(failures)}, in {folder}"


def find_candidate(runs_dir: str, evaluation: str) -> tuple[Path, Path]:
    """Returns the run of the candidate, and its SavedModel, made if needed."""
    run = Path(runs_dir, read_json(Path(evaluation))["run"])
    folder = Path(runs_dir, MODELS, run.parents[1].name, run.name)
    if versions := list_versions(folder):
        return run, versions[-1]
    with start_tensorflow():
        from tfcomp.models.loading import load_run
        from tfcomp.training.export import export_scored

    found = load_run(run)
    scored = found.model, found.config, found.dataset, found.metrics
    return run, export_scored(*scored, folder)


def report(
    profile: str, runs_dir: str, work_dir: str, folder: dsl.Artifact, page: str
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
    from reproduction.claims import Evidence, read_evidence, write_report

    parsed = parse_profile(profile)
    folders: list[Path] = []
    for work in make_works(parsed, f"--log_dir={runs_dir / LOGS}"):
        is_sweep = isinstance(work, Sweep)
        folders += [t.path for t in work.items] if is_sweep else [work.folder]
    patterns = [glob.escape(str(path)) for path in folders if path.exists()]
    evidence = read_evidence(patterns) if patterns else Evidence()
    command = f"python -m pipelines.run_local --profile={parsed.name}"
    return write_report(evidence, output, command)
