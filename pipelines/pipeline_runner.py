"""Runs the pipeline on this machine, with progress for people."""

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from kfp import local

from pipelines.pipeline import STEPS, make_pipeline
from pipelines.pipeline_root import PipelineRoot
from pipelines.profile import Profile
from pipelines.running_step import LineStream, read_event
from tfcomp.config.errors import RunError
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_progress import format_seconds

_CACHE_HIT = re.compile(r"Task (\S+) cache hit")
SOURCES = Path(__file__).parents[1]  # the folder that contains `pipelines`


class Progress:
    """Prints a line for each step that ends, and those in between.

    Attributes:
        problems: `step: reason` for every step that failed or that stopped
            the pipeline.
    """

    def __init__(self, steps: Sequence[str], terminal: TextIO) -> None:
        self._terminal = terminal
        self._states = dict.fromkeys(steps, "skipped")
        self._width = max(map(len, steps))
        self.problems: list[str] = []
        self._last: dict[str, str] = {}

    def read(self, line: str) -> None:
        """Takes a line of output, which need not be an event."""
        event = read_event(line)
        if event is not None:
            self._take(event)
        elif found := _CACHE_HIT.search(line):
            # Done before, with the same inputs and code.
            step = found[1].replace("-", "_")
            self._states[step] = "kept"
            self._print(step, "kept", "done before")

    def finish(self) -> None:
        """Names the steps that did not start, and those that did not end."""
        for step, state in self._states.items():
            if state == "skipped":
                self._print(step, state, "")
            elif state == "started":
                reason = "ended without a reason, as if it had been killed"
                self._print(step, "failed", reason)
                self.problems.append(f"{step}: {reason}")

    @property
    def result(self) -> list[str]:
        """The last line of each step that has ended, in their order."""
        return [self._last[step] for step in self._states if step in self._last]

    def is_done(self, step: str) -> bool:
        """Whether a step has run to its end since the pipeline started."""
        return self._states[step] == "done"

    def _take(self, event: dict[str, Any]) -> None:
        step, state = event["step"], event["state"]
        text = event.get("text", "")
        if state == "running":
            self._print(step, "", text)
            return
        self._states[step] = state
        if state == "started":
            return
        seconds = format_seconds(event["seconds"])
        self._print(step, state, f"{text}  ({seconds})")
        if state != "done":
            self.problems.append(f"{step}: {text}")

    def _print(self, step: str, state: str, text: str) -> None:
        line = f"{state:8}{step:{self._width}}  {text}".rstrip()
        if state:
            self._last[step] = line
        # Not `print`, which the SDK replaces by one that indents.
        self._terminal.write(f"{line}\n")
        self._terminal.flush()


class LogStream(LineStream):
    """A stream to a log file whose lines the progress reads as well."""

    def __init__(self, log: TextIO, progress: Progress) -> None:
        super().__init__(progress.read)
        self._log = log

    def write(self, text: str) -> int:
        self._log.write(text)
        return super().write(text)


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
