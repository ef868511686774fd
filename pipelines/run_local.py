"""Runs the pipeline on this machine, from examples to a pushed model.

    python -m pipelines.run_local --profile=smoke

The steps are the same as `python -m pipelines.compile` writes for a cluster.
After an interruption, or a change, the same command runs missing steps. The
folder of a pipeline, pipeline_runs/<profile>, has `work` with examples, runs,
evaluation and report.
"""

import inspect
import os
from pathlib import Path
from typing import Any

from pipelines.profile import PROFILE_FLAG, Profile, load_profile, make_works
from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.config.errors import RunError, explain_failure
from tfcomp.config.quiet import quiet_startup
from tfcomp.storage.files import make_folder, read_json, refuse_links
from tfcomp.storage.output_folders import check_folder, lock_folder
from tfcomp.sweeps.scheduler_options import SchedulerOptions

TRAINING = ("example_gen", "example_validator", "trainer")
RELEASE = ("evaluator", "infra_validator", "pusher")
STEPS = (*TRAINING, *RELEASE, "report")
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
    **{
        field.name: (field.default, field.metadata["help"])
        for field in SchedulerOptions.list_settings()
        if field.name in ("workers", "scheduler")
    },
}


class PipelineError(RunError):
    """A step failed, or the candidate was not blessed; no mistake of usage."""

    status = 1


def check_and_run(settings: dict[str, Any]) -> int:
    """Checks all settings, then runs the steps."""
    scheduler = SchedulerOptions.from_flags(settings)
    check_folder("export_dir", settings["export_dir"])
    profile = load_profile(settings["profile"], settings["plugins"])
    name = settings["pipeline_root"] or f"pipeline_runs/{profile.name}"
    check_folder("pipeline_root", name)
    root = Path(name).absolute()
    works = [
        f"{work.folder.name} ({len(work.items)} {work.noun})"
        for work in make_works(profile)
    ]
    print(f"profile  {profile.name}: {', '.join(works)}", flush=True)
    refuse_links(make_folder(root))
    with lock_folder(root):
        run_pipeline(profile, root / "work", settings["export_dir"], scheduler)
    return 0


def run_pipeline(
    profile: Profile, work: Path, export_dir: str, options: SchedulerOptions
) -> None:
    """Runs the steps in this process; a PipelineError names what failed."""
    with quiet_startup():
        from kfp import dsl

        from pipelines import pipeline

    artifacts = "examples anomalies runs evaluation metrics pushed folder page"
    inputs: dict[str, Any] = {
        name: (dsl.Metrics if name == "metrics" else dsl.Artifact)(
            name=name, uri=str(work / name)
        )
        for name in artifacts.split()
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
        function = getattr(pipeline, step).python_func
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


main = Command(__doc__, FLAGS, check_and_run)

if __name__ == "__main__":
    exit_on_user_error(main)
