"""The shape that all commands share: help, flags, one line for a mistake.

A command is a module with `main(argv)`, which calls `run_command`, and ends
with `exit_on_user_error(main)`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from absl import flags

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import list_flagfiles
from tfcomp.config.run_flags import parse_flags

HELP = {"--help", "-help", "-h", "--helpfull", "--helpshort"}


def run_command(
    argv: Sequence[str],
    purpose: str | None,
    values: flags.FlagValues,
    action: Callable[[dict[str, Any]], int],
) -> int:
    """Prints the help, or parses the flags and does what they ask for.

    Args:
        argv: The name of the program and its arguments.
        purpose: What the command does; its help begins with it.
        values: The flags of the command.
        action: Takes the parsed flags and returns the exit status. It imports
            TensorFlow, pandas and the like itself, so that the help and bad
            flags need none of them.

    Raises:
        ConfigError: If a flag has an ill-formed value.
        RunError: If a flag is unknown or a flagfile is missing.
    """
    if HELP & set(argv[1:]):
        print(format_help(purpose or "", values))
        return 0
    return action(parse_flags(argv[1:], values))


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


def format_help(purpose: str, values: flags.FlagValues) -> str:
    """What a command does, its flags, and the flagfiles that it can read."""
    lines = [purpose.strip(), "", "Flags:"]
    for name in values:
        flag = values[name]
        default = "" if flag.default == [] else str(flag.default)
        if flag.boolean:
            default = default.lower()
        lines += [f"  --{name}={default}", f"        {flag.help}"]
    lines += ["  --flagfile=FILE", "        Read flags from a file."]
    shipped = list_flagfiles(values)
    if shipped:
        lines.append(f"        Shipped with tfcomp: {', '.join(shipped)}.")
    return "\n".join(lines)
