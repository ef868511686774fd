"""The progress of a pipeline for people, out of the SDK's flood of lines."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any
from typing import TextIO

from pipelines.steps.step_events import read_event
from tfcomp.sweeps.sweep_progress import format_seconds

STEPS = (
    "example_gen",
    "example_validator",
    "trainer",
    "evaluator",
    "infra_validator",
    "pusher",
    "report",
)
WIDTH = max(map(len, STEPS))
_CACHE_HIT = re.compile(r"Task (\S+) cache hit")


def count(number: int, noun: str, plural: str = "") -> str:
    """A number of things, as `1 trial` or `2 trials`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


class Progress:
    """Prints a line for each step that ends, and those in between.

    Args:
        show: Prints a line.

    Attributes:
        problems: `step: reason` of what failed or was stopped.
    """

    def __init__(self, show: Callable[[str], None] = print) -> None:
        self._show = show
        self._states: dict[str, str] = {}
        self.problems: list[str] = []

    def take(self, event: dict[str, Any]) -> None:
        """Takes an event of a step (see `pipelines.steps.step_events`)."""
        step, state = event["step"], event["state"]
        text = event.get("text", "")
        if state == "running":
            self._print(step, "", text)
            return
        self._states[step] = state
        if state == "started":
            return
        self._print(
            step, state, f"{text}  ({format_seconds(event['seconds'])})"
        )
        if state != "done":
            self.problems.append(f"{step}: {text}")

    def keep(self, task: str) -> None:
        """A step was done before, with the same inputs and code."""
        step = task.replace("-", "_")
        self._states[step] = "kept"
        self._print(step, "kept", "done before")

    def finish(self) -> None:
        """Names the steps that were not reached, or ended without a word."""
        for step in STEPS:
            state = self._states.get(step, "skipped")
            if state == "skipped":
                self._print(step, state, "")
            elif state == "started":
                reason = "ended without a reason, as if it had been killed"
                self._print(step, "failed", reason)
                self.problems.append(f"{step}: {reason}")

    def is_done(self, step: str) -> bool:
        """Whether a step came to its end in this start."""
        return self._states.get(step) == "done"

    def _print(self, step: str, state: str, text: str) -> None:
        self._show(f"{state:8}{step:{WIDTH}}  {text}".rstrip())


class LogStream(io.TextIOBase):
    """A stream to a log file that picks the events out of it.

    Args:
        log: The file; everything goes there.
        progress: What is told of events and of steps that are kept.
    """

    def __init__(self, log: TextIO, progress: Progress) -> None:
        self._log = log
        self._progress = progress
        self._rest = ""

    def write(self, text: str) -> int:
        """Takes a piece of text, which need not be a whole line."""
        self._log.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)

    def flush(self) -> None:
        self._log.flush()

    def _take(self, line: str) -> None:
        event = read_event(line)
        if event is not None:
            self._log.flush()
            self._progress.take(event)
        elif found := _CACHE_HIT.search(line):
            self._progress.keep(found[1])
