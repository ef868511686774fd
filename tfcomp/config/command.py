"""Runs commands: help, flags, and one line for each mistake of a user."""

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.errors import explain_failure
from tfcomp.config.plugins import import_plugins
from tfcomp.config.run_config import PARTS, RunConfig
from tfcomp.config.settings import Settings
from tfcomp.config.termination import Terminated, end_on_signals

HELP = {"--help", "-help", "-h", "--helpfull", "--helpshort"}
FlagTable = Mapping[str, tuple[Any, str]] | Callable[[], flags.FlagValues]


@dataclass(frozen=True)
class Command:
    """A command: calling it with `argv` returns its exit status.

    The action imports TensorFlow and pandas itself: help and bad flags need
    neither.

    Attributes:
        purpose: What it does, above the flags in its help.
        table: Its flags, as `make_flags` takes them, or a function that
            returns them.
        action: Its work. It receives the flags, and returns the exit status.
        first: An example, which is printed if there are no flags.
    """

    purpose: str | None
    table: FlagTable
    action: Callable[[dict[str, Any]], int]
    first: str = ""

    def define_flags(self) -> flags.FlagValues:
        """Returns its flags, with their default values."""
        if callable(self.table):
            return self.table()
        return run_flags.make_flags(self.table)

    def __call__(self, argv: Sequence[str]) -> int:
        arguments = argv[1:]
        purpose = self.purpose or ""
        values = self.define_flags()
        if HELP & set(arguments):
            modules = run_flags.find_value(arguments, "plugins")
            import_plugins(modules)
            run_flags.add_declared(modules, values)
            print(format_help(purpose, values))
            return 0
        if self.first and not arguments:
            print(f"{purpose}\nTry first: {self.first}\nAll flags: --help")
            return 0

        settings = run_flags.parse_flags(arguments, values)
        # Figures go to files: no window is opened, whatever is set up.
        os.environ["MPLBACKEND"] = "agg"
        return self.action(settings)


def exit_on_user_error(main: Callable[[list[str]], int]) -> None:
    """Calls `main(sys.argv)` and exits with its status, as shells number it."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # tests replace them
            stream.reconfigure(errors="backslashreplace")

    line = ""
    status: Any = 0
    try:
        with end_on_signals():
            status = main(sys.argv)
            sys.stdout.flush()
    except Terminated as end:
        status = end.code
    except KeyboardInterrupt:
        line = "interrupted"
        status = 130
    except BrokenPipeError:  # the reader has ended, as in `| head`
        status = 141
    except Exception as error:
        explained = explain_failure(error)
        if explained is None:
            raise
        message, status = explained
        line = f"error: {message}"

    try:
        sys.stdout.flush()
    except OSError:  # Python would try once more at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if line:
        print(line, file=sys.stderr, flush=True)
    sys.exit(status)


def _open_missing_streams() -> None:
    """Opens what a shell has closed (`2>&-`), for which Python has None."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:  # the file gets the free number
            stream = open(os.devnull, mode, encoding="utf-8")
            setattr(sys, name, stream)


def format_help(purpose: str, values: flags.FlagValues) -> str:
    """Formats the help: purpose, flags, and shipped flagfiles.

    Args:
        purpose: Stands above the flags.
        values: The flags of a command.
    """
    lines = [purpose.strip()]
    for title, names in _group_flags(values).items():
        if names:
            lines += ["", f"{title}:"]
        for name in names:
            flag = values[name]
            default = str(flag.default).removeprefix("[]")
            if flag.boolean:
                default = default.lower()
            lines.append(f"  --{name}={default}")
            lines.append(f"        {flag.help}")

    lines += ["  --flagfile=FILE", "        Read flags from a file."]
    if "dataset" in values:  # the flags of a run
        names = run_flags.list_flagfiles()
        lines.append(f"        Shipped with tfcomp: {', '.join(names)}.")
    return "\n".join(lines)


def _group_flags(values: flags.FlagValues) -> dict[str, list[str]]:
    """Groups flags by the part of a run that they describe."""
    groups: dict[str, list[str]] = {"Flags": list(values)}
    if "dataset" not in values:
        return groups

    parts: dict[str, type[Settings]] = {**PARTS, "output": RunConfig}
    for title, part in parts.items():
        names = [field.name for field in part.list_settings()]
        groups[title.capitalize()] = names
        for name in names:
            groups["Flags"].remove(name)
    return groups
