"""Runs the pipeline on this machine, from examples to a pushed model.

    python -m pipelines.run_local --profile=smoke

The steps are the same as those that `python -m pipelines.compile` writes for a
cluster. If they were interrupted, or something has changed, the same command
with --resume runs only what is missing. On a finished one it prints the result.
"""

import os
from pathlib import Path
from typing import Any

from pipelines.pipeline_root import PipelineRoot, check_path
from pipelines.profile import (
    PROFILE_FLAG,
    load_profile,
    make_searches,
    make_sweeps,
    replace_missing_digits,
)
from pipelines.running_step import count
from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.model_versions import list_versions
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.scheduling import check_scheduler

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
        "Continue the pipeline in the folder; finished work is kept.",
    ),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), run_steps)


def run_steps(settings: dict[str, Any]) -> int:
    """Checks everything, then runs the steps."""
    scheduler = SchedulerOptions.from_flags(settings)
    check_path("export_dir", settings["export_dir"])
    profile = replace_missing_digits(
        load_profile(settings["profile"], settings["trust_plugins"])
    )
    default = f"pipeline_runs/{profile.name}"
    root = PipelineRoot(settings["pipeline_root"] or default)
    sweeps, searches = make_sweeps(profile), make_searches(profile)
    parts = [
        count(len(sweeps), "sweep"),
        count(sum(len(sweep.items) for sweep in sweeps), "trial"),
    ]
    if searches:
        cases = sum(len(part.items) for part in searches)
        parts.append(count(cases, "threshold search", "threshold searches"))
    described = [
        f"profile  {profile.name}: {', '.join(parts)}",
        *(f"note     {note}" for note in profile.notes),
        f"log      {root.log}",
    ]
    inputs = {  # what the result depends on
        "profile": profile.to_json(),
        "export_dir": os.path.abspath(settings["export_dir"]),
        "code": compute_code_version(),
    }
    pushed = list_versions(Path(settings["export_dir"], profile.rules.push_as))
    lines = root.read_result(inputs) if pushed else []
    if lines and not settings["resume"]:
        print("\n".join([*described, *lines]))
        return 0
    root.check(profile.name, settings["resume"])
    check_scheduler(scheduler)
    print("\n".join(described), flush=True)
    with quiet_startup():
        from pipelines.pipeline_runner import run_pipeline
    lines = run_pipeline(profile, root, settings["export_dir"], scheduler)
    root.write_result(profile.name, inputs, lines)
    return 0


if __name__ == "__main__":
    exit_on_user_error(main)
