"""User mistakes: one clear line and exit status 2, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


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


class DivergedError(RunError):
    """A training whose loss is no longer finite: no mistake of usage."""

    status = 1


def exit_on_user_error(main: Callable[[list[str]], int]) -> None:
    """Calls `main(sys.argv)` and exits with its status.

    `ConfigError` and `RunError` print one line and exit with status 2 (a
    diverged training with 1); an interrupt exits with 130 and a reader that
    went away (`| head`) with 141, the shell's conventions.
    """
    try:
        status = main(sys.argv)
        sys.stdout.flush()
    except (ConfigError, RunError) as error:
        line = " ".join(str(error).split())
        print(f"error: {line}", file=sys.stderr)
        status = getattr(error, "status", 2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:
        # What is left in the buffer has nowhere to go at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    sys.exit(status)
