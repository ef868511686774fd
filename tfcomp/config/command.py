"""Runs commands: help, flags, and one line for each mistake of a user."""

import io
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.errors import explain_failure
from tfcomp.config.plugins import Registry, import_plugins
from tfcomp.config.run_config import COMMON_FLAGS, PARTS, RunConfig, all_fields
from tfcomp.config.run_flags import PART_FLAGS
from tfcomp.config.settings import Settings
from tfcomp.config.termination import Terminated, end_on_signals

FULL_HELP = "--helpfull"
HELP = {"--help", "-help", "-h", FULL_HELP, "--helpshort"}
MARGIN = " " * 8  # before the description of a flag
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
        parts: The parts of a run whose flags its help lists, as `data`.
    """

    purpose: str | None
    table: FlagTable
    action: Callable[[dict[str, Any]], int]
    first: str = ""
    parts: tuple[str, ...] = ("data", "model", "training", "output")

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
            self._print_help(arguments, values)
            return 0
        if self.first and not arguments:
            print(f"{purpose}\nTry first: {self.first}\nAll flags: --help")
            return 0

        settings = run_flags.parse_flags(arguments, values)
        # Figures go to files: no window is opened, whatever is set up.
        os.environ["MPLBACKEND"] = "agg"
        return self.action(settings)

    def _print_help(
        self, arguments: Sequence[str], values: flags.FlagValues
    ) -> None:
        """Prints the help: purpose, flags, and shipped flagfiles."""
        others = [word for word in arguments if word not in HELP]
        modules = run_flags.find_value(others, "plugins")
        import_plugins(modules)
        run_flags.add_declared(modules, values)

        groups = {"Flags": list(values)}
        is_run = "dataset" in values
        if is_run:
            groups = _group_flags(values)
        if is_run and FULL_HELP not in arguments:
            names = run_flags.find_parts(others, values)
            groups = _select_common(groups, self.parts, names)
        print(format_help(self.purpose or "", groups, values))


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
    except KeyboardInterrupt as end:
        # Its arguments say how to go on.
        line = ": ".join(["interrupted", *map(str, end.args)])
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


def format_help(
    purpose: str,
    groups: Mapping[str, Sequence[str]],
    values: flags.FlagValues,
) -> str:
    """Formats the help of a command.

    Args:
        purpose: Stands above the flags.
        groups: Names of the flags to list, by title.
        values: The flags of the command.
    """
    lines = [purpose.strip()]
    for title, names in groups.items():
        if names:
            lines += ["", f"{title}:"]
        for name in names:
            flag = values[name]
            default = str(flag.default).removeprefix("[]")
            if flag.boolean:
                default = default.lower()
            lines.append(f"  --{name}={default}")
            lines += _wrap(flag.help + _list_choices(name))

    lines += ["  --flagfile=FILE", *_wrap("Read flags from a file.")]
    if "dataset" not in values:
        return "\n".join(lines)

    shipped = run_flags.list_flagfiles()
    stems = [name.removesuffix(run_flags.SUFFIX) for name in shipped]
    lines += _wrap(f"Shipped with tfcomp: {', '.join(stems)}.")
    lines += [
        "",
        "All flags: --helpfull. Those of a model, code or dataset, and of a "
        "flagfile:",
        "--model=acting --help, --dataset=sprites --help, low_rank --help.",
    ]
    return "\n".join(lines)


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=80,
        initial_indent=MARGIN,
        subsequent_indent=MARGIN,
        break_on_hyphens=False,
    )


def _list_choices(name: str) -> str:
    """Lists the values that a flag of a run can take, if they have names."""
    registry = Registry.by_flag.get(name)
    names: Sequence[str] = ()
    if name in PART_FLAGS and registry:
        names = registry.names()
    for field in all_fields():
        if field.name == name:
            names = field.metadata["choices"] or names
    if not names:
        return ""
    return f" One of: {', '.join(names)}."


def _group_flags(values: flags.FlagValues) -> dict[str, list[str]]:
    """Groups flags by the part of a run that they describe."""
    groups: dict[str, list[str]] = {"Flags": list(values)}
    parts: dict[str, type[Settings]] = {**PARTS, "output": RunConfig}
    for title, part in parts.items():
        names = [field.name for field in part.list_settings()]
        groups[title.capitalize()] = names
        for name in names:
            groups["Flags"].remove(name)
    return groups


def _select_common(
    groups: Mapping[str, Sequence[str]],
    parts: Collection[str],
    names: Collection[str],
) -> dict[str, list[str]]:
    """Selects flags that are used often, and those of some parts.

    Args:
        groups: Names of flags by title.
        parts: Titles in small letters; flags of others are left out.
        names: Models, codes and datasets whose own flags are listed, too.
    """
    common = set(COMMON_FLAGS)
    for field in all_fields():
        if not set(names).isdisjoint(field.metadata["used_by"]):
            common.add(field.name)

    selected = {"Flags": list(groups["Flags"])}
    for title, flag_names in groups.items():
        if title.lower() in parts:
            selected[title] = [name for name in flag_names if name in common]
    return selected
