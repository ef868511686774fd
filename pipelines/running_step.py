"""A step while it runs: what it reports, and where its outputs lie."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from kfp import dsl

from pipelines.lifeline import die_with_runner
from pipelines.step_events import LineStream, emit
from tfcomp.config.command import check_streams
from tfcomp.config.failures import explain_failure
from tfcomp.storage.files import write_text


@contextlib.contextmanager
def run_step(name: str) -> Iterator[RunningStep]:
    """Reports start, end and failure of the step in its block.

    An exception is reported in one line and raised again, which fails the
    task; the traceback is in the log.
    """
    die_with_runner()
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
