"""Runs the pipeline on this machine, with progress for people."""

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from kfp import local

from pipelines.pipeline import STEPS, make_pipeline
from pipelines.pipeline_root import PipelineRoot
from pipelines.profile import Profile
from pipelines.running_step import LineStream, read_event
from tfcomp.config.errors import RunError
from tfcomp.sweeps.scheduler_options import SchedulerOptions
from tfcomp.sweeps.sweep_progress import format_seconds

_CACHE_HIT = re.compile(r"Task (\S+) cache hit")


class Progress:
    """Prints a line for each step that ends, and those in between."""

    def __init__(self, steps: Sequence[str], terminal: TextIO) -> None:
        self._terminal = terminal
        self._states = dict.fromkeys(steps, "skipped")
        self._width = max(map(len, steps))
        self.problems: list[str] = []  # "step: reason" of what failed, or stops
        self._last: dict[str, str] = {}

    def read(self, line: str) -> None:
        """Takes a line of output, which need not be an event."""
        event = read_event(line)
        if event is not None:
            self._take(**event)
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
        return self._states[step] == "done"

    def _take(
        self, step: str, state: str, text: str = "", seconds: float = 0.0
    ) -> None:
        if state == "running":
            self._print(step, "", text)
            return
        self._states[step] = state
        if state != "started":
            self._print(step, state, f"{text}  ({format_seconds(seconds)})")
        if state not in ("started", "done"):
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
    """Runs what has not been done; gives the result, or a PipelineError."""
    progress = Progress(STEPS, sys.stdout)
    # Every line is in the log as soon as it is complete.
    how = ("a", 1, "utf-8", "backslashreplace")
    with root.claim(profile.name), open(root.log, *how) as log:
        start_sdk(root)
        problem = ""
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
                problem = "the SDK gave up"
    progress.finish()
    line = "; ".join(progress.problems) or problem
    if line:
        if not progress.is_done("pusher"):
            line += "; nothing was pushed"
        raise PipelineError(f"{line} (see {root.log})")
    return progress.result


def start_sdk(root: PipelineRoot) -> None:
    """Makes the SDK run steps as processes of this machine's Python."""
    # They must find `pipelines`, which is not installed, from any folder.
    sources = str(Path(__file__).parents[1])
    paths = [sources, os.environ.get("PYTHONPATH", "")]
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
    logger, stream = logging.getLogger(), LogStream(log, progress)
    handler, level = logging.StreamHandler(stream), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with redirect_stdout(stream), redirect_stderr(log):
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
