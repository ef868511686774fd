"""trainer: runs the sweeps and searches of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipelines.profile import Profile
from pipelines.profile import make_studies
from pipelines.profile import make_sweeps
from tfcomp.storage.code_version import hash_files
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.sweep_run import run_sweep
from tfcomp.threshold import draw
from tfcomp.thresholds.threshold_run import run_study

# Folders of what the trainer writes.
LOGS = "logs"
MODELS = "saved_models"


@dataclass(frozen=True)
class TrainingResult:
    """What training came to.

    Attributes:
        num_trials: Trials of all sweeps, and threshold searches.
        failures: A line for each of them that failed.
        digest: Hash of the tables, and so of the results.
    """

    num_trials: int
    failures: list[str]
    digest: str


def train_profile(
    profile: Profile,
    examples_dir: str,
    runs_dir: Path,
    options: SchedulerOptions,
) -> TrainingResult:
    """Runs what is missing of the sweeps and searches of a profile.

    A trial that fails is recorded and leaves the others alone. Searches
    decide on their data as they go, and render them.

    Args:
        profile: The profile.
        examples_dir: Where `example_gen` wrote the data sets.
        runs_dir: Run folders are written to `logs/` in it, SavedModels to
            `saved_models/`.
        options: Where trials run.

    Raises:
        RunError: If a folder is in use or cannot be written.
    """
    logs = f"--log_dir={runs_dir / LOGS}"
    models = f"--export_dir={runs_dir / MODELS}"
    examples = f"--examples_dir={examples_dir}"
    sweeps = make_sweeps(profile, logs, models, examples)
    studies = make_studies(profile, logs, models)
    total = len(sweeps) + len(studies)
    num_trials, failures = 0, []
    for number, sweep in enumerate(sweeps, 1):
        name = sweep.folder.path.name
        print(f"sweep {name} ({number} of {total})")
        failed = run_sweep(sweep, options)
        num_trials += len(sweep.trials)
        failures += [
            f"{name} {trial.describe()}: {failed[trial.name]}"
            for trial in sweep.trials
            if trial.name in failed
        ]
    for number, study in enumerate(studies, len(sweeps) + 1):
        name = study.folder.path.name
        print(f"threshold search {name} ({number} of {total})")
        laws, failed = run_study(study, options)
        draw(study, laws)
        num_trials += len(study.cases)
        failures += [f"{name} {what}: {why}" for what, why in failed.items()]
    return TrainingResult(num_trials, failures, hash_tables(runs_dir / LOGS))


def hash_tables(log_dir: Path) -> str:
    """SHA-256 of all tables of results, in hex."""
    return hash_files(
        (path.relative_to(log_dir).as_posix(), path)
        for pattern in ("*/trials.csv", "*/thresholds.csv")
        for path in sorted(log_dir.glob(pattern))
    )
