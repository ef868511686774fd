"""The progress of a pipeline for people, out of the SDK's flood of lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TextIO

from pipelines.steps.step_events import LineStream
from pipelines.steps.step_events import read_event
from tfcomp.sweeps.sweep_progress import format_seconds

_CACHE_HIT = re.compile(r"Task (\S+) cache hit")


class Progress:
    """Prints a line for each step that ends, and those in between.

    Args:
        steps: Names of all steps, in their order.
        show: Prints a line.

    Attributes:
        problems: `step: reason` for every step that failed or that stopped
            the pipeline.
    """

    def __init__(
        self, steps: Sequence[str], show: Callable[[str], None]
    ) -> None:
        self._show = show
        self._states = dict.fromkeys(steps, "skipped")
        self._width = max(map(len, steps))
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
        seconds = format_seconds(event["seconds"])
        self._print(step, state, f"{text}  ({seconds})")
        if state != "done":
            self.problems.append(f"{step}: {text}")

    def keep(self, task: str) -> None:
        """A step was done before, with the same inputs and code."""
        step = task.replace("-", "_")
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

    def is_done(self, step: str) -> bool:
        """Whether a step has run to its end since the pipeline started."""
        return self._states[step] == "done"

    def _print(self, step: str, state: str, text: str) -> None:
        self._show(f"{state:8}{step:{self._width}}  {text}".rstrip())


class LogStream(LineStream):
    """A stream to a log file that picks the events out of it.

    Args:
        log: The file; everything goes there.
        progress: Is told of events and of steps that were done before.
    """

    def __init__(self, log: TextIO, progress: Progress) -> None:
        super().__init__(self._tell)
        self._log = log
        self._progress = progress

    def write(self, text: str) -> int:
        """Takes a piece of text, which need not be a whole line."""
        self._log.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._log.flush()

    def _tell(self, line: str) -> None:
        event = read_event(line)
        if event is not None:
            self._log.flush()
            self._progress.take(event)
        elif found := _CACHE_HIT.search(line):
            self._progress.keep(found[1])
