"""User mistakes: one clear line and exit status 2, never a traceback."""

from __future__ import annotations


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
        super().__init__(f"--{name} {rule}, got {value!r}")


class RunError(Exception):
    """A run directory or a file that cannot be used; a one-line message."""

    status = 2


class RefusedError(RunError):
    """The system refuses what is needed, such as room: no mistake of usage."""

    status = 1


class DivergedError(RunError):
    """A training whose loss is no longer finite: no mistake of usage."""

    status = 1
