"""Events: lines of output in which a step reports how it goes.

A step is a process that the SDK starts. Whenever it starts, gets on or ends,
it writes `MARK` and JSON as a line of its output. On this machine
`pipelines.run_local` turns these events into its progress; on a cluster they
are part of the log.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

MARK = "@tfcomp "


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
