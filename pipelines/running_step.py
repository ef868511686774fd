"""A step while it runs: what it reports, and where its outputs lie.

Whenever a step starts, gets on or ends, it writes an event, `MARK` and JSON as
a line of its output, which `pipelines.run_local` turns into its progress.

Its parent is a shell of the SDK, which outlives a runner that is killed. So the
runner locks a file, which the system unlocks however the runner ends, and every
step waits for that lock.
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
    with contextlib.suppress(ValueError):
        if (text := line.strip()).startswith(MARK):
            return json.loads(text.removeprefix(MARK))
    return None


def count(number: int, noun: str, plural: str = "") -> str:
    """A number of things, as `1 trial` or `2 trials`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def list_files(folder: Path, pattern: str = "**/*") -> list[tuple[str, Path]]:
    """The files below a folder and their names there, sorted."""
    found = filter(Path.is_file, sorted(folder.glob(pattern)))
    return [(path.relative_to(folder).as_posix(), path) for path in found]


class LineStream(io.TextIOBase):
    """A stream that hands on whole lines, except blank ones."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            self._take(line)
        return len(text)


@contextmanager
def keep_steps_alive(folder: Path) -> Iterator[None]:
    """Holds the lock for the steps that the block starts.

    Each runner has a file of its own, so that no step takes a later one for it.
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
    # There is no file if the runner ended before this step began.
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # waits for the runner's end
    os._exit(1)


@contextlib.contextmanager
def run_step(name: str) -> Iterator[RunningStep]:
    """Reports start, end and failure, in one line, of the step in its block."""
    if path := os.environ.get(LIFELINE):
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
    """A running step; `run_step` makes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""  # the result in one line
        self.stop = ""  # why nothing may be pushed, if that is so

    def say(self, line: str) -> None:
        """Shows a line of progress."""
        emit(step=self.name, state="running", text=line)

    @contextlib.contextmanager
    def show_output(self) -> Iterator[None]:
        """Shows what the block prints as progress of the step."""
        with contextlib.redirect_stdout(LineStream(self.say)):
            yield

    def place(self, artifact: dsl.Artifact, work_dir: str, name: str) -> None:
        """Moves an output to `<work_dir>/<name>`, if there is a `work_dir`.

        The next run, to which the SDK gives other folders, continues it there.
        """
        if work_dir:
            artifact.uri = os.path.join(work_dir, name)
        os.makedirs(os.path.dirname(artifact.path), exist_ok=True)

    def log(self, metrics: dsl.Metrics, numbers: Mapping[str, float]) -> None:
        """Logs numbers, and writes the file that the SDK's cache looks for."""
        for name, number in numbers.items():
            metrics.log_metric(name, number)
        write_text(Path(metrics.path), json.dumps(dict(numbers)) + "\n")
