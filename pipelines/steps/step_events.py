"""What every step does around its work: it reports, and it does not linger.

A step is a process that the SDK starts through a shell. It tells how it goes
in lines of its output (`MARK` and JSON), which `run_local` turns into its
progress; on a cluster they are part of the log.
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
from collections.abc import Iterator

MARK = "@tfcomp "
# A file that is locked for as long as the runner of the pipeline lives.
LIFELINE = "TFCOMP_PIPELINE_LIFELINE"


class Step:
    """A running step.

    Attributes:
        name: Its name.
        note: What came out, in one line; set by the step.
        stop: Why the pipeline must not go on to push, if so.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""
        self.stop = ""

    def say(self, line: str) -> None:
        """Shows a line of progress."""
        emit(step=self.name, state="running", text=line)


@contextlib.contextmanager
def run_step(name: str) -> Iterator[Step]:
    """Reports start, end and failure of the step in its block.

    An exception is reported in one line and raised again, which fails the
    task; the traceback is in the log.
    """
    die_with_runner()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    step, start = Step(name), time.monotonic()
    emit(step=name, state="started")
    try:
        yield step
    except BaseException as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        _finish(step, "failed", reason, start)
        raise
    _finish(step, "stopped" if step.stop else "done", step.stop, start)


@contextlib.contextmanager
def show_output(step: Step) -> Iterator[None]:
    """Shows what the block prints as progress of the step."""
    with contextlib.redirect_stdout(_Lines(step.say)):
        yield


def emit(**event: object) -> None:
    """Writes one event to the output."""
    print(f"{MARK}{json.dumps(event)}", file=sys.__stdout__, flush=True)


def read_event(line: str) -> dict[str, object] | None:
    """The event in a line of output; None if there is none."""
    text = line.strip()
    if not text.startswith(MARK):
        return None
    try:
        return json.loads(text.removeprefix(MARK))
    except ValueError:
        return None


def die_with_runner() -> None:
    """Ends this process as soon as the runner of the pipeline is gone.

    Its own parent is the SDK's shell, which outlives a runner that is killed.
    The system frees the runner's lock whatever ends it. Without a runner on
    this machine nothing happens.
    """
    path = os.environ.get(LIFELINE)
    if path:
        threading.Thread(
            target=_wait_and_exit, args=(path,), daemon=True
        ).start()


def _wait_and_exit(path: str) -> None:
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # waits for the runner's end
    except FileNotFoundError:
        pass  # it ended before we looked
    os._exit(1)


def _finish(step: Step, state: str, reason: str, start: float) -> None:
    emit(
        step=step.name,
        state=state,
        text=reason or step.note,
        seconds=time.monotonic() - start,
    )


class _Lines(io.TextIOBase):
    """A stream that hands on whole lines."""

    def __init__(self, take: object) -> None:
        self._take = take
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                self._take(line)
        return len(text)
