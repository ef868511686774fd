"""The shape that all commands share: help, flags, one line for a mistake.

A command is a module with `main(argv)`, which calls `run_command`, and ends
with `exit_on_user_error(main)`.
"""

import ast
import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config.errors import RefusedError, describe_refusal, explain_failure
from tfcomp.config.flagfiles import find_value, list_flagfiles, place_words
from tfcomp.config.plugins import import_plugins
from tfcomp.config.private_folder import use_private_folder
from tfcomp.config.run_config import PARTS, RunConfig, all_fields
from tfcomp.config.run_flags import add_declared, add_trust, parse_flags

# In the environment when a shell asks what may come next (`tfcomp.completion`).
COMPLETES = "_ARGCOMPLETE"
# `timeout` sends SIGTERM twice (process and group). A later SIGTERM skips
# cleanup.
REPEAT_SECONDS = 5
HELP = {"--help", "-help", "-h", "--helpfull", "--helpshort"}
COMMON = (
    "dataset region model encoding depth width epochs learning_rate seed "
    "run_name"
).split()
OUTPUT = (
    "log_dir export_dir export pictures resume overwrite eval_every "
    "layerwise_every"
).split()


class FlagsAsked(Exception):
    """Carries the flags of a command to the completion of shells."""

    def __init__(self, values: flags.FlagValues) -> None:
        super().__init__()
        self.values = values


def run_command(
    argv: Sequence[str],
    purpose: str | None,
    values: flags.FlagValues,
    action: Callable[[dict[str, Any]], int],
    first: str = "",
) -> int:
    """Prints the help, or parses the flags and calls the action.

    Args:
        argv: The name of the program and its arguments.
        purpose: First lines of the help.
        action: Takes the parsed flags and returns the exit status. It imports
            TensorFlow and pandas itself: help and bad flags need neither.
        first: Example that is printed if there are no flags.

    Raises:
        RefusedError: The system refuses memory, room or rights.
        ConfigError, RunError: As `parse_flags`.
    """
    add_trust(values)
    if COMPLETES in os.environ:
        raise FlagsAsked(values)
    if HELP & set(argv[1:]):
        if plugins := find_value(argv[1:], "plugins"):
            import_plugins(plugins)
            add_declared(plugins, values)
        print(format_help(purpose or "", values))
        return 0
    if first and not argv[1:]:
        print(f"{purpose or ''}\nTry first: {first}\nAll flags: --help")
        return 0
    settings = parse_flags(place_words(argv[1:], values), values)
    try:
        # Figures go to files: no window is opened, whatever is set up.
        os.environ["MPLBACKEND"] = "agg"
        with use_private_folder():
            return action(settings)
    except Exception as error:
        refusal = describe_refusal(error)
        if not refusal:
            raise
        hint = "what was finished is kept, go on with the same command"
        hint += " and --resume" if "resume" in values else ""
        raise RefusedError(f"{refusal}; {hint}") from error


def exit_on_user_error(main: Callable[[list[str]], int]) -> None:
    """Calls `main(sys.argv)` and exits with its status.

    Errors that `explain_failure` knows print one line. The status is 130 after
    an interrupt, 143 after SIGTERM, and 141 if the reader of stdout has ended
    (`| head`), as in shells.
    """
    line = ""
    if any(option.startswith("error") for option in sys.warnoptions):
        # Of `PYTHONWARNINGS=error`: warnings of libraries are no errors here.
        warnings.simplefilter("ignore")
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _stop)
        check_streams()
        status = main(sys.argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        line, status = "interrupted", 130
    except _StopError:
        line, status = "told to stop", 143
    except BrokenPipeError:
        status = 141
    except Exception as error:
        explained = explain_failure(error)
        if explained is None:
            raise
        cause = error.__cause__ or error
        is_print = isinstance(cause, OSError) and cause.filename is None
        where = "stdout: " if is_print and not _can_print() else ""
        line, status = f"error: {where}{explained[0]}", explained[1]
    _can_print()
    with contextlib.suppress(OSError):
        print(line, end="\n" if line else "", file=sys.stderr, flush=True)
    sys.exit(status)


class _StopError(BaseException):
    """SIGTERM has arrived; open files and folders are closed on the way."""


def _stop(*_: object) -> None:
    first = time.monotonic()

    def stop_again(*_: object) -> None:
        if time.monotonic() - first > REPEAT_SECONDS:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop_again)
    raise _StopError


def check_streams() -> None:
    """Makes standard streams accept any character; closed ones are dropped."""
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # tests replace them
            stream.reconfigure(errors="backslashreplace")


def read_purpose(module: Path) -> str:
    """Returns the first line of a command's docstring, without importing it."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8")))
    return (text or "-").splitlines()[0]


def _can_print() -> bool:
    """Flushes stdout; False if that fails, and later output is dropped."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        # Python would try once more at the end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def format_help(purpose: str, values: flags.FlagValues) -> str:
    """Returns the help: purpose, flags, and shipped flagfiles."""
    lines = [purpose.strip()]
    for title, names in _list_groups(values):
        lines += ["", f"{title}:"]
        for flag in (values[name] for name in names):
            default = "" if flag.default == [] else str(flag.default)
            default = default.lower() if flag.boolean else default
            lines += [f"  --{flag.name}={default}", f"        {flag.help}"]
    lines += ["  --flagfile=FILE", "        Read flags from a file."]
    if shipped := list_flagfiles(values):
        lines.append(f"        Shipped with tfcomp: {', '.join(shipped)}.")
    return "\n".join(lines)


def _list_groups(values: flags.FlagValues) -> Iterator[tuple[str, list[str]]]:
    """Yields titles and names of flags; each flag of the command once."""
    if "dataset" not in values:  # no flags of a run
        yield "Flags", list(values)
        return
    of_runs = {field.name for field in all_fields()}
    groups = {
        "Flags that are changed most": COMMON,
        "Flags of this command": [n for n in values if n not in of_runs],
    }
    for part, settings in PARTS.items():
        groups[part.capitalize()] = [f.name for f in settings.list_settings()]
    advanced = [field.name for field in RunConfig.list_settings()]
    groups |= {"Output": OUTPUT, "Advanced": advanced}
    shown: set[str] = set()
    for title, names in groups.items():
        yield title, [name for name in names if name not in shown]
        shown.update(names)
