"""A step while it runs: what it reports, and where its outputs lie.

A step is a process that the SDK starts. Whenever it starts, gets on or ends,
it writes an event, `MARK` and JSON as a line of its output. On this machine
`pipelines.run_local` turns these into its progress; on a cluster they are part
of the log.

The parent of a step is a shell of the SDK, which outlives a runner that is
killed. So the runner locks a file, which the system unlocks however the runner
ends, and every step waits for that lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.command import check_streams
from tfcomp.config.errors import explain_failure
from tfcomp.storage.files import write_text

if TYPE_CHECKING:
    from kfp import dsl

MARK = "@tfcomp "
# The variable that tells the steps which file the runner has locked.
LIFELINE = "TFCOMP_PIPELINE_LIFELINE"


def emit(**event: object) -> None:
    """Writes one event to the output."""
    print(f"{MARK}{json.dumps(event)}", file=sys.__stdout__, flush=True)


def read_event(line: str) -> dict[str, Any] | None:
    """The event in a line of output; None if there is none."""
    text = line.strip()
    if not text.startswith(MARK):
        return None
    try:
        return json.loads(text.removeprefix(MARK))
    except ValueError:
        return None


def count(number: int, noun: str, plural: str = "") -> str:
    """A number of things, as `1 trial` or `2 trials`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


class LineStream(io.TextIOBase):
    """A stream that hands on whole lines, except blank ones."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = ""

    def write(self, text: str) -> int:
        """Takes a piece of text, which need not be a whole line."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            self._take(line)
        return len(text)


@contextmanager
def keep_steps_alive(folder: Path) -> Iterator[None]:
    """Holds the lock for the steps that the block starts.

    Each runner makes a file of its own in the folder, so that a step of an
    earlier runner does not take a later one for it.
    """
    for stale in folder.glob(".alive-*"):
        stale.unlink()
    path = folder / f".alive-{os.getpid()}"
    with open(path, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.environ[LIFELINE] = str(path)
        try:
            yield
        finally:
            del os.environ[LIFELINE]
            path.unlink()


def _wait_and_exit(path: str) -> None:
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # waits for the runner's end
    except FileNotFoundError:
        pass  # the runner ended before this step began
    os._exit(1)


@contextlib.contextmanager
def run_step(name: str) -> Iterator[RunningStep]:
    """Reports start, end and failure of the step in its block.

    An exception is reported in one line and raised again, which fails the
    task; the traceback is in the log.
    """
    path = os.environ.get(LIFELINE)
    if path:
        threading.Thread(
            target=_wait_and_exit, args=(path,), daemon=True
        ).start()
    check_streams()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    step, start = RunningStep(name), time.monotonic()

    def finish(state: str, text: str) -> None:
        seconds = time.monotonic() - start
        emit(step=name, state=state, text=text, seconds=seconds)

    emit(step=name, state="started")
    try:
        yield step
    except BaseException as error:
        line, _ = explain_failure(error) or (" ".join(str(error).split()), 1)
        finish("failed", line or type(error).__name__)
        raise
    finish("stopped" if step.stop else "done", step.stop or step.note)


class RunningStep:
    """A running step; `run_step` makes it.

    Attributes:
        note: The result in one line; the step sets it.
        stop: The reason why nothing may be pushed; empty if there is none.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""
        self.stop = ""

    def say(self, line: str) -> None:
        """Shows a line of progress."""
        emit(step=self.name, state="running", text=line)

    @contextlib.contextmanager
    def show_output(self) -> Iterator[None]:
        """Shows what the block prints as progress of the step."""
        with contextlib.redirect_stdout(LineStream(self.say)):
            yield

    def place(self, artifact: dsl.Artifact, work_dir: str, name: str) -> None:
        """Moves an output to a folder that outlives this run of the pipeline.

        The SDK gives every output a new folder in every run. What is written
        to `<work_dir>/<name>` is found by the next run, which continues it.

        Args:
            artifact: The output; the parent of its folder is made.
            work_dir: The folder that stays; empty if there is none.
            name: What the output is called in it.
        """
        if work_dir:
            artifact.uri = os.path.join(work_dir, name)
        os.makedirs(os.path.dirname(artifact.path), exist_ok=True)

    def log(self, metrics: dsl.Metrics, numbers: Mapping[str, float]) -> None:
        """Logs numbers, and writes them to the file of the artifact.

        The SDK keeps them only as metadata. Its local cache would then take
        the artifact for lost, and run the step again.
        """
        for name, number in numbers.items():
            metrics.log_metric(name, number)
        write_text(Path(metrics.path), json.dumps(dict(numbers)) + "\n")
