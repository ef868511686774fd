"""trainer: runs the sweeps and searches of a profile, and finds its models."""

import json
from pathlib import Path

from kfp import dsl

from pipelines.profile import make_searches, make_sweeps, parse_profile
from pipelines.running_step import count, list_files, run_step
from tfcomp.config.quiet import start_tensorflow
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.model_versions import list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_all

# Where the trainer writes run folders and SavedModels, below its output.
LOGS = "logs"
MODELS = "saved_models"


def execute(
    profile: str,
    examples: dsl.Dataset,
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("trainer") as step:
        step.place(runs, work_dir, "runs")
        folder, parsed = Path(runs.path), parse_profile(profile)
        logs = f"--log_dir={folder / LOGS}"
        models = f"--export_dir={folder / MODELS}"
        data = f"--examples_dir={examples.path}"
        with step.show_output():
            # Searches decide on their data as they go, and render them.
            work = [
                *make_sweeps(parsed, logs, models, data),
                *make_searches(parsed, logs, models),
            ]
            options = SchedulerOptions(workers=workers, scheduler=scheduler)
            failures = run_all(work, options)
        # Steps that come after are skipped only if the tables are the same.
        tables = list_files(folder / LOGS, "*/trials.csv")
        tables += list_files(folder / LOGS, "*/thresholds.csv")
        runs.metadata["digest"] = hash_files(tables)
        number, failed = sum(len(part.items) for part in work), len(failures)
        step.log(metrics, {"trials": number, "failed": failed})
        for failure in failures:
            step.say(f"failed: {failure}")
        step.note = f"{count(number, 'trial')}, {failed} failed, in {folder}"


def find_candidate(runs_dir: Path, evaluation: Path) -> Path:
    """The run folder of the candidate that an `evaluation.json` names."""
    content = json.loads(evaluation.read_text("utf-8"))
    return runs_dir / content["candidate"]["run"]


def find_model(run: Path) -> Path:
    """The SavedModel of a trial, exported if it has none; or a RunError."""
    runs_dir, sweep = run.parents[3], run.parents[1].name
    folder = runs_dir / MODELS / sweep / run.name
    versions = list_versions(folder)
    if versions:
        return versions[-1]
    with start_tensorflow():
        from tfcomp.training.export import export_run

    return export_run(run, folder)
