"""Runs commands: help, flags, and one line for each mistake of a user."""

import ast
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config import flagfiles, run_flags, termination
from tfcomp.config.errors import RefusedError, describe_refusal, explain_failure
from tfcomp.config.plugins import import_plugins
from tfcomp.config.process import use_private_folder
from tfcomp.config.run_config import PARTS, RunConfig
from tfcomp.config.settings import Settings
from tfcomp.config.termination import Terminated, end_on_sigterm

HELP = {"--help", "-help", "-h", "--helpfull", "--helpshort"}
FlagTable = Mapping[str, tuple[Any, str]] | Callable[[], flags.FlagValues]


@dataclass(frozen=True)
class Command:
    """A command: calling it with `argv` returns its exit status.

    The action imports TensorFlow and pandas itself: help and bad flags need
    neither. `first` is an example that is printed if there are no flags.
    """

    purpose: str | None
    table: FlagTable
    action: Callable[[dict[str, Any]], int]
    first: str = ""

    def __call__(self, argv: Sequence[str]) -> int:
        table, purpose = self.table, self.purpose or ""
        values = table() if callable(table) else run_flags.make_flags(table)
        if HELP & set(argv[1:]):
            joined = flagfiles.join_values(argv[1:], values)
            if plugins := flagfiles.find_value(joined, "plugins"):
                import_plugins(plugins)
                run_flags.add_declared(plugins, values)
            print(format_help(purpose, values))
            return 0
        if self.first and not argv[1:]:
            print(f"{purpose}\nTry first: {self.first}\nAll flags: --help")
            return 0
        arguments = flagfiles.expand_positionals(argv[1:], values)
        settings = run_flags.parse_flags(arguments, values)
        try:
            # Figures go to files: no window is opened, whatever is set up.
            os.environ["MPLBACKEND"] = "agg"
            with use_private_folder():
                return self.action(settings)
        except Exception as error:
            refusal = describe_refusal(error)
            if not refusal:
                raise
            hint = "what was finished is kept, go on with the same command"
            hint += " and --resume" if "resume" in values else ""
            raise RefusedError(f"{refusal}; {hint}") from error


def exit_on_user_error(main: Callable[[list[str]], int]) -> None:
    """Calls `main(sys.argv)` and exits with its status, as shells number it."""
    line = ""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # tests replace them
            stream.reconfigure(errors="backslashreplace")
    try:
        with end_on_sigterm():
            status = main(sys.argv)
            sys.stdout.flush()
    except Terminated:
        status = termination.STATUS
    except KeyboardInterrupt:
        line, status = "interrupted\n", 130
    except BrokenPipeError:  # the reader has ended, as in `| head`
        status = 141
    except Exception as error:
        explained = explain_failure(error)
        if explained is None:
            raise
        line, status = f"error: {explained[0]}\n", explained[1]
    try:
        sys.stdout.flush()
    except OSError:  # Python would try once more at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(line, end="", file=sys.stderr, flush=True)
    sys.exit(status)


def read_purpose(module: Path) -> str:
    """Returns the first line of a command's docstring, without importing it."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8")))
    return (text or "-").splitlines()[0]


def format_help(purpose: str, values: flags.FlagValues) -> str:
    """Returns the help: purpose, flags, and shipped flagfiles."""
    lines = [purpose.strip()]
    for title, names in _list_groups(values).items():
        lines += ["", f"{title}:"] if names else []
        for flag in (values[name] for name in names):
            default = "" if flag.default == [] else str(flag.default)
            default = default.lower() if flag.boolean else default
            lines += [f"  --{flag.name}={default}", f"        {flag.help}"]
    lines += ["  --flagfile=FILE", "        Read flags from a file."]
    if shipped := flagfiles.list_flagfiles(values):
        lines.append(f"        Shipped with tfcomp: {', '.join(shipped)}.")
    return "\n".join(lines)


def _list_groups(values: flags.FlagValues) -> dict[str, list[str]]:
    groups = {}
    if "dataset" in values:  # the flags of a run
        parts: dict[str, type[Settings]] = {**PARTS, "output": RunConfig}
        for title, part in parts.items():
            names = [field.name for field in part.list_settings()]
            groups[title.capitalize()] = names
    own = [name for name in values if name not in sum(groups.values(), [])]
    return {"Flags": own, **groups}
