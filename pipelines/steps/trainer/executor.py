"""trainer: runs the sweeps and searches of a profile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.profile import Profile
from pipelines.profile import make_studies
from pipelines.profile import make_sweeps
from tfcomp.sweeps.scheduling import SchedulerOptions
from tfcomp.sweeps.sweep_run import run_sweep
from tfcomp.threshold import draw
from tfcomp.thresholds.threshold_run import run_study

LOGS = "logs"
MODELS = "saved_models"


@dataclass(frozen=True)
class TrainingResult:
    """What training came to.

    Attributes:
        num_trials: Trials of all sweeps, and threshold searches.
        failures: A line for each of them that failed.
        digest: Hash of the tables, which is that of the results.
    """

    num_trials: int
    failures: list[str]
    digest: str


def train_profile(
    profile: Profile,
    examples_dir: str,
    runs_dir: Path,
    options: SchedulerOptions,
    say: Callable[[str], None] = print,
) -> TrainingResult:
    """Runs what is missing of the sweeps and searches of a profile.

    Searches decide on their data as they go, and render them.

    A trial that fails is recorded and leaves the others alone.

    Args:
        profile: The profile.
        examples_dir: Where `example_gen` wrote the data sets.
        runs_dir: Run folders are written to `logs/` in it, SavedModels to
            `saved_models/`.
        options: Where trials run.
        say: Shows a line of progress.

    Raises:
        RunError: If a folder is in use or cannot be written.
    """
    logs = f"--log_dir={runs_dir / LOGS}"
    models = f"--export_dir={runs_dir / MODELS}"
    sweeps = make_sweeps(
        profile, logs, models, f"--examples_dir={examples_dir}"
    )
    studies = make_studies(profile, logs, models)
    total = len(sweeps) + len(studies)
    failures = []
    for number, sweep in enumerate(sweeps, 1):
        name = sweep.folder.path.name
        say(f"sweep {name} ({number} of {total})")
        failed = run_sweep(sweep, options)
        failures += [
            f"{name} {trial.describe()}: {failed[trial.name]}"
            for trial in sweep.trials
            if trial.name in failed
        ]
    for number, study in enumerate(studies, len(sweeps) + 1):
        name = study.folder.path.name
        say(f"threshold search {name} ({number} of {total})")
        laws, failed = run_study(study, options)
        draw(study, laws)
        failures += [f"{name} {what}: {why}" for what, why in failed.items()]
    count = sum(len(sweep.trials) for sweep in sweeps)
    count += sum(len(study.cases) for study in studies)
    return TrainingResult(count, failures, hash_tables(runs_dir / LOGS))


def list_run_folders(profile: Profile, runs_dir: Path) -> list[Path]:
    """Folders of the trials and searches of a profile that there are."""
    logs = f"--log_dir={runs_dir / LOGS}"
    folders = [
        trial.path
        for sweep in make_sweeps(profile, logs)
        for trial in sweep.trials
    ]
    folders += [study.folder.path for study in make_studies(profile, logs)]
    return [folder for folder in folders if folder.exists()]


def hash_tables(log_dir: Path) -> str:
    """SHA-256 of all tables of results, in hex."""
    digest = hashlib.sha256()
    for pattern in ("*/trials.csv", "*/thresholds.csv"):
        for path in sorted(log_dir.glob(pattern)):
            content = path.read_bytes()
            name = path.relative_to(log_dir)
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
