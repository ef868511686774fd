"""Runs the sweeps and searches of a profile, and finds their models."""

import json
from pathlib import Path

from kfp import dsl

from pipelines.profile import make_searches, make_sweeps, parse_profile
from pipelines.running_step import RunningStep, count, list_files
from tfcomp.config.quiet import start_tensorflow
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.model_versions import list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_all

# Folders of runs and of SavedModels in the output of the trainer.
LOGS = "logs"
MODELS = "saved_models"


def train_all(
    step: RunningStep,
    profile: str,
    examples: dsl.Dataset,
    workers: int,
    scheduler: str,
    runs: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Runs all trials and searches that are not finished."""
    folder, parsed = Path(runs.path), parse_profile(profile)
    logs = f"--log_dir={folder / LOGS}"
    models = f"--export_dir={folder / MODELS}"
    data = f"--examples_dir={examples.path}"
    # Searches choose their data as they go, and render them.
    work = [
        *make_sweeps(parsed, logs, models, data),
        *make_searches(parsed, logs, models),
    ]
    options = SchedulerOptions(workers=workers, scheduler=scheduler)
    failures = run_all(work, options)
    # The SDK skips the report only for the same tables.
    tables = list_files(folder / LOGS, "*/trials.csv")
    tables += list_files(folder / LOGS, "*/thresholds.csv")
    runs.metadata["digest"] = hash_files(tables)
    number, failed = sum(len(part.items) for part in work), len(failures)
    metrics.log_metric("trials", number)
    metrics.log_metric("failed", failed)
    for failure in failures:
        print(f"failed: {failure}")
    step.note = f"{count(number, 'trial')}, {failed} failed, in {folder}"


def find_candidate(runs_dir: Path, evaluation: Path) -> Path:
    """Returns the run folder that an `evaluation.json` names."""
    content = json.loads(evaluation.read_text("utf-8"))
    return runs_dir / str(content["run"])


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
