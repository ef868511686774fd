"""Runs the pipeline on this machine, with progress for people."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from kfp import local

from pipelines.local.pipeline_progress import LogStream, Progress
from pipelines.local.pipeline_root import PipelineRoot
from pipelines.pipeline import STEPS, make_pipeline
from pipelines.profile import Profile
from tfcomp.config.errors import RunError
from tfcomp.sweeps.scheduler_options import SchedulerOptions

SOURCES = Path(__file__).parents[2]  # the folder that contains `pipelines`


class PipelineError(RunError):
    """A pipeline that did not get to its end: no mistake of usage."""

    status = 1


def run_pipeline(
    profile: Profile,
    root: PipelineRoot,
    export_dir: str,
    options: SchedulerOptions,
) -> list[str]:
    """Runs every step that has not been done before; returns their results.

    Raises:
        PipelineError: If a step failed, or the candidate was not blessed;
            names the step and the reason.
        RunError: If the folder of the pipeline cannot be used.
    """
    progress = Progress(STEPS, sys.stdout)
    # Every line is in the log as soon as it is complete.
    how = ("a", 1, "utf-8", "backslashreplace")
    with root.claim(profile.name), open(root.log, *how) as log:
        start_sdk(root)
        failed = False
        with capture_output(log, progress):
            try:
                make_pipeline()(
                    profile=profile.to_json(),
                    export_dir=os.path.abspath(export_dir),
                    work_dir=str(root.work),
                    workers=options.workers,
                    scheduler=options.scheduler,
                )
            except RuntimeError:  # of the SDK, when a step fails
                failed = True
    progress.finish()
    if failed and not progress.problems:
        progress.problems.append("the SDK gave up")
    if progress.problems:
        line = "; ".join(progress.problems)
        if not progress.is_done("pusher"):
            line += "; nothing was pushed"
        raise PipelineError(f"{line} (see {root.log})")
    return progress.result


def start_sdk(root: PipelineRoot) -> None:
    """Makes the SDK run steps as processes of this machine's Python."""
    # They must find `pipelines`, which is not installed, from any folder.
    paths = [str(SOURCES), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    local.init(
        runner=local.SubprocessRunner(use_venv=False),
        pipeline_root=str(root.kfp),
        # The SDK deletes it at the end.
        workspace_root=str(root.kfp / "workspace"),
        enable_caching=True,
        cache_root=str(root.kfp / "cache"),
    )


@contextmanager
def capture_output(log: TextIO, progress: Progress) -> Iterator[None]:
    """Sends all output to the log, and its lines to the progress."""
    logger = logging.getLogger()
    stream = LogStream(log, progress)
    handler = logging.StreamHandler(stream)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with redirect_stdout(stream), redirect_stderr(log):
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
