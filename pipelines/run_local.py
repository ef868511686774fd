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

from pipelines.profile import PROFILE_FLAGS, Profile, load_profile, make_works
from tfcomp.config.errors import RunError, explain_failure
from tfcomp.config.process import exit_on_user_error, quiet_startup
from tfcomp.config.run_flags import Command
from tfcomp.storage.files import (
    check_folder,
    lock_folder,
    make_folder,
    read_json,
)
from tfcomp.sweeps.pool import SchedulerOptions

TRAINING = ("example_gen", "example_validator", "trainer")
RELEASE = ("evaluator", "infra_validator", "pusher")
STEPS = (*TRAINING, *RELEASE, "report")
ARTIFACTS = "examples anomalies runs evaluation pushed folder page".split()
FLAGS = {
    **PROFILE_FLAGS,
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
    options = SchedulerOptions.from_flags(settings)
    check_folder("export_dir", settings["export_dir"])
    profile = load_profile(settings["profile"], settings["plugins"])
    name = settings["pipeline_root"] or f"pipeline_runs/{profile.name}"
    check_folder("pipeline_root", name)

    works = []
    for work in make_works(profile):
        works.append(f"{work.folder.name} ({len(work.items)} {work.noun})")
    print(f"profile  {profile.name}: {', '.join(works)}", flush=True)

    root = make_folder(Path(name).absolute())
    with lock_folder(root):
        run_pipeline(profile, root / "work", settings["export_dir"], options)
    return 0


def run_pipeline(
    profile: Profile,
    work: Path,
    export_dir: str,
    options: SchedulerOptions,
) -> None:
    """Runs the steps in this process.

    Args:
        profile: The profile.
        work: The folder of all outputs but the pushed model.
        export_dir: The folder of pushed models.
        options: The workers of the trainer.

    Raises:
        PipelineError: If a step failed or blessed no candidate. The report is
            still written if there are runs.
    """
    inputs = make_inputs(profile, work, export_dir, options)
    problems = run_steps(TRAINING, inputs)
    is_trained = not problems
    if is_trained:
        problems = run_steps(RELEASE, inputs)
    if problems:
        problems.append("nothing was pushed")
    if is_trained:
        problems += run_steps(("report",), inputs)

    if problems:
        raise PipelineError("; ".join(problems))


def make_inputs(
    profile: Profile,
    work: Path,
    export_dir: str,
    options: SchedulerOptions,
) -> dict[str, Any]:
    """Makes the values of all parameters of steps, by name."""
    with quiet_startup():
        from kfp import dsl

    inputs: dict[str, Any] = {
        "profile": profile.to_json(),
        "export_dir": os.path.abspath(export_dir),
        "work_dir": str(work),
        "workers": options.workers,
        "scheduler": options.scheduler,
        "metrics": dsl.Metrics(name="metrics", uri=str(work / "metrics")),
    }
    for name in ARTIFACTS:
        inputs[name] = dsl.Artifact(name=name, uri=str(work / name))
    return inputs


def run_steps(steps: tuple[str, ...], inputs: dict[str, Any]) -> list[str]:
    """Runs steps up to the first one that stops; returns why it did."""
    with quiet_startup():
        from pipelines import pipeline

    for step in steps:
        function = getattr(pipeline, step).python_func
        names = inspect.signature(function).parameters
        try:
            result = function(**{name: inputs[name] for name in names})
        except Exception as error:
            explained = explain_failure(error)
            if explained is None:
                raise
            return [f"{step}: {explained[0]}"]
        if result is False:
            evaluation = read_json(Path(inputs["evaluation"].path))
            return [f"{step}: {evaluation['verdict']}"]
    return []


main = Command(__doc__, FLAGS, check_and_run)

if __name__ == "__main__":
    exit_on_user_error(main)
