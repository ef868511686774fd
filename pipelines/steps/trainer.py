"""Runs the sweeps and searches of a profile, and finds their models."""

from pathlib import Path

from pipelines.profile import make_searches, make_sweeps, parse_profile
from pipelines.running_step import list_files
from tfcomp.config.quiet import start_tensorflow
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.files import read_json
from tfcomp.storage.model_versions import list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.workload import run_all

# Folders of runs and of SavedModels in the output of the trainer.
LOGS = "logs"
MODELS = "saved_models"


def train_all(
    profile: str, folder: Path, examples_dir: str, options: SchedulerOptions
) -> tuple[int, int]:
    """Runs trials and searches that are not finished.

    Returns the number of all, and of those that failed.
    """
    parsed = parse_profile(profile)
    logs = f"--log_dir={folder / LOGS}"
    models = f"--export_dir={folder / MODELS}"
    # Searches choose their data as they go, and render them.
    work = [
        *make_sweeps(parsed, logs, models, f"--examples_dir={examples_dir}"),
        *make_searches(parsed, logs, models),
    ]
    failures = run_all(work, options)
    for failure in failures:
        print(f"failed: {failure}")
    return sum(len(part.items) for part in work), len(failures)


def hash_tables(folder: Path) -> str:
    """Returns the hash of all results."""
    tables = list_files(folder / LOGS, "*/trials.csv")
    return hash_files(tables + list_files(folder / LOGS, "*/thresholds.csv"))


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
