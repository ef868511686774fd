"""trainer: runs the sweeps and searches of a profile."""

from pathlib import Path

from kfp import dsl

from pipelines.profile import Profile, make_searches, make_sweeps, parse_profile
from pipelines.running_step import count, run_step
from tfcomp.storage.code_version import hash_files
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
        folder = Path(runs.path)
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        with step.show_output():
            number, failures = train_profile(
                parse_profile(profile), examples.path, folder, options
            )
        # Steps that come after are skipped only if the tables are the same.
        log_dir = folder / LOGS
        runs.metadata["digest"] = hash_files(
            (path.relative_to(log_dir).as_posix(), path)
            for pattern in ("*/trials.csv", "*/thresholds.csv")
            for path in sorted(log_dir.glob(pattern))
        )
        failed = len(failures)
        step.log(metrics, {"trials": number, "failed": failed})
        for failure in failures:
            step.say(f"failed: {failure}")
        step.note = f"{count(number, 'trial')}, {failed} failed, in {folder}"


def train_profile(
    profile: Profile,
    examples_dir: str,
    runs_dir: Path,
    options: SchedulerOptions,
) -> tuple[int, list[str]]:
    """Runs what is missing of the sweeps and searches of a profile.

    A trial that fails is recorded and leaves the others alone. Searches
    decide on their data as they go, and render them. Sweeps read the data
    sets that `example_gen` wrote.

    Returns:
        The number of trials and searches, and a line for each that failed.

    Raises:
        RunError: If a folder is in use or cannot be written.
    """
    logs = f"--log_dir={runs_dir / LOGS}"
    models = f"--export_dir={runs_dir / MODELS}"
    examples = f"--examples_dir={examples_dir}"
    sweeps = make_sweeps(profile, logs, models, examples)
    work = [*sweeps, *make_searches(profile, logs, models)]
    return sum(len(part.items) for part in work), run_all(work, options)
