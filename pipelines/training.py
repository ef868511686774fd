"""trainer: runs the sweeps and searches of a profile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.profile import Profile
from pipelines.profile import make_sweeps
from tfcomp.sweeps.run import run_sweep
from tfcomp.sweeps.scheduling import SchedulerOptions

LOGS = "logs"
MODELS = "saved_models"


@dataclass(frozen=True)
class TrainingResult:
    """What training came to.

    Attributes:
        num_trials: Trials of all sweeps.
        failures: A line for each trial that failed.
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
    """Runs what is missing of the sweeps of a profile.

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
    sweeps = make_sweeps(
        profile,
        f"--log_dir={runs_dir / LOGS}",
        f"--export_dir={runs_dir / MODELS}",
        f"--examples_dir={examples_dir}",
    )
    failures = []
    for number, sweep in enumerate(sweeps, 1):
        name = sweep.folder.path.name
        say(f"sweep {number} of {len(sweeps)}: {name}")
        failed = run_sweep(sweep, options)
        failures += [
            f"{name} {trial.describe()}: {failed[trial.name]}"
            for trial in sweep.trials
            if trial.name in failed
        ]
    total = sum(len(sweep.trials) for sweep in sweeps)
    return TrainingResult(total, failures, hash_tables(runs_dir / LOGS))


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
