"""User mistakes: one clear line and exit status 2, never a traceback."""

import difflib
from collections.abc import Iterable

# Characters of a value in an error.
MAX_SHOWN = 200


class ConfigError(ValueError):
    """A setting that breaks a rule.

    Args:
        name: The flag without dashes, as `grid_size`.
        rule: What must hold, as `must be a multiple of 4`.
        value: The value received.
    """

    def __init__(self, name: str, rule: str, value: object) -> None:
        self.name = name
        self.rule = rule
        self.value = value
        super().__init__(f"--{name} {rule}, got {_show(value)}")


class RunError(Exception):
    """A run directory or a file that cannot be used; a one-line message."""

    status = 2


class RefusedError(RunError):
    """The system refuses what is needed, such as room: no mistake of usage."""

    status = 1


class DivergedError(RunError):
    """A training whose loss is no longer finite: no mistake of usage."""

    status = 1


def suggest(name: str, known: Iterable[str], dashes: str = "") -> str:
    """A hint at the known name that is closest, empty if none is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {dashes}{close[0]}?" if close else ""


def _show(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of 5,000 digits
        return "a number of thousands of digits"
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}... ({len(text)} characters)"
