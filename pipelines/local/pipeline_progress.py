"""The progress of a pipeline for people, out of the SDK's flood of lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TextIO

from pipelines.step_events import LineStream, read_event
from tfcomp.sweeps.sweep_progress import format_seconds

_CACHE_HIT = re.compile(r"Task (\S+) cache hit")


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
