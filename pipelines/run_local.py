"""Runs the pipeline on this machine, from examples to a pushed model.

    python -m pipelines.run_local --profile=smoke

The steps are those that `python -m pipelines.compile` writes for a cluster.
After an interruption, or a change, the same command runs what is missing. The
folder of a pipeline, pipeline_runs/<profile>, has `pipeline.json` with the name
of its profile, and `work` with examples, runs, evaluation and report.
"""

import inspect
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.profile import (
    PROFILE_FLAG,
    Profile,
    load_profile,
    make_searches,
    make_sweeps,
    replace_missing_digits,
)
from pipelines.running_step import count
from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import RunError, explain_failure
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.files import (
    DamagedFileError,
    make_folder,
    read_json,
    refuse_links,
    write_text,
)
from tfcomp.storage.output_folders import LOCK_FILE, check_folder, lock_folder
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import check_scheduler

MARKER = "pipeline.json"
TRAINING = ("example_gen", "example_validator", "trainer")
RELEASE = ("evaluator", "infra_validator", "pusher")
FLAGS = {
    **PROFILE_FLAG,
    "export_dir": (
        "saved_models",
        "Where models are pushed to: <export_dir>/<name>/<version>/.",
    ),
    "pipeline_root": (
        "",
        "The folder of this pipeline. The default is pipeline_runs/<profile>.",
    ),
    "scheduler": (
        "",
        "The address of a Dask scheduler, whose workers share the folders. "
        "Without it trials run on this machine.",
    ),
    "workers": (
        0,
        "How many trials run at a time. 0 means one for each GPU, or one.",
    ),
    "resume": (
        False,
        "Deprecated: a pipeline always continues in its folder.",
    ),
}


class PipelineError(RunError):
    """A pipeline that did not get to its end: no mistake of usage."""

    status = 1


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), check_and_run)


def check_and_run(settings: dict[str, Any]) -> int:
    """Checks all settings, then runs the steps."""
    scheduler = SchedulerOptions.from_flags(settings)
    check_folder("export_dir", settings["export_dir"])
    profile = replace_missing_digits(
        load_profile(settings["profile"], settings["trust_plugins"])
    )
    name = settings["pipeline_root"] or f"pipeline_runs/{profile.name}"
    check_folder("pipeline_root", name)
    root = Path(name).absolute()
    check_root(root, profile.name)
    check_scheduler(scheduler)
    print("\n".join(describe_profile(profile)), flush=True)
    with claim_root(root, profile.name):
        run_pipeline(profile, root / "work", settings["export_dir"], scheduler)
    return 0


def check_root(root: Path, profile: str) -> None:
    """Raises a RunError if a folder holds another pipeline or other files."""
    place, marker = f"--pipeline_root={root}", root / MARKER
    if marker.exists():
        try:
            other = read_json(marker)["profile"]
        except (OSError, DamagedFileError, LookupError) as error:
            rule = f"{MARKER} cannot be read: choose another folder"
            raise RunError(f"{place}: {rule}") from error
        if other != profile:
            rule = f"holds the profile {other}, not {profile}"
            raise RunError(f"{place} {rule}: choose another folder")
    elif root.exists() and set(os.listdir(root)) - {LOCK_FILE}:
        rule = "must be new or hold a pipeline, it holds other files"
        raise RunError(f"{place} {rule}")


def describe_profile(profile: Profile) -> list[str]:
    """Describes what a profile trains, a line each."""
    sweeps, searches = make_sweeps(profile), make_searches(profile)
    parts = [
        count(len(sweeps), "sweep"),
        count(sum(len(sweep.items) for sweep in sweeps), "trial"),
    ]
    if searches:
        cases = sum(len(part.items) for part in searches)
        parts.append(count(cases, "threshold search", "threshold searches"))
    notes = [f"note     {note}" for note in profile.notes]
    return [f"profile  {profile.name}: {', '.join(parts)}", *notes]


@contextmanager
def claim_root(root: Path, profile: str) -> Iterator[None]:
    """Locks the folder of a pipeline for the block."""
    try:
        refuse_links(make_folder(root))
        lock = lock_folder(root)
    except OSError as error:
        rule = "--pipeline_root must be writable"
        raise RunError(f"{rule}: {error}") from error
    with lock:
        write_text(root / MARKER, json.dumps({"profile": profile}) + "\n")
        yield


def run_pipeline(
    profile: Profile, work: Path, export_dir: str, options: SchedulerOptions
) -> None:
    """Runs the steps in this process; a PipelineError names what failed."""
    with quiet_startup():
        from pipelines import components

    kinds = components.list_outputs()
    inputs: dict[str, Any] = {
        name: kind(name=name, uri=str(work / name))
        for name, kind in kinds.items()
    }
    inputs |= {
        "profile": profile.to_json(),
        "export_dir": os.path.abspath(export_dir),
        "work_dir": str(work),
        "workers": options.workers,
        "scheduler": options.scheduler,
    }
    problems: list[str] = []

    def call(step: str) -> bool:
        """Calls a step; False if it failed, or blessed no candidate."""
        function = getattr(components, step).python_func
        inputs["metrics"] = kinds["metrics"](uri=str(work / "metrics" / step))
        names = inspect.signature(function).parameters
        try:
            if function(**{name: inputs[name] for name in names}) is not False:
                return True
            reasons = read_json(Path(inputs["evaluation"].path))["reasons"]
            problems.append(f"{step}: not blessed: {'; '.join(reasons)}")
        except Exception as error:
            if not (explained := explain_failure(error)):
                raise
            problems.append(f"{step}: {explained[0]}")
        return False

    is_trained = all(map(call, TRAINING))
    is_pushed = is_trained and all(map(call, RELEASE))
    if is_trained:
        call("report")
    if problems:
        problems += ["nothing was pushed"] * (not is_pushed)
        raise PipelineError("; ".join(problems))


if __name__ == "__main__":
    exit_on_user_error(main)
