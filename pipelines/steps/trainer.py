"""Runs the sweeps and searches of a profile, and finds their models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.profile import make_works, parse_profile
from pipelines.running_step import place, run_step
from tfcomp.config.quiet import start_tensorflow
from tfcomp.storage.files import read_json
from tfcomp.storage.output_folders import list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_all

if TYPE_CHECKING:
    from kfp import dsl

# Folders of runs and of SavedModels in the output of the trainer.
LOGS = "logs"
MODELS = "saved_models"


def run(
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
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        places = f"--log_dir={folder / LOGS}", f"--export_dir={folder / MODELS}"
        works = make_works(parse_profile(profile), *places, data=examples_dir)
        failures = run_all(works, options)
        for failure in failures:
            print(f"failed: {failure}")
        number = sum(len(work.items) for work in works)
        step.note = f"trials: {number}, failed: {len(failures)}, in {folder}"


def find_candidate(runs_dir: str | Path, evaluation: str | Path) -> Path:
    """Returns the run folder that an `evaluation.json` names."""
    return Path(runs_dir, read_json(Path(evaluation))["run"])


def find_model(run: Path) -> Path:
    """Returns the SavedModel of a trial; exports it if it has none."""
    runs_dir, sweep = run.parents[3], run.parents[1].name
    folder = runs_dir / MODELS / sweep / run.name
    versions = list_versions(folder)
    if versions:
        return versions[-1]
    with start_tensorflow():
        from tfcomp.training.export import export_run

    return export_run(run, folder)
