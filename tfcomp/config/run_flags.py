"""Command-line flags and flagfiles <-> `RunConfig`.

absl parses the flags; the flags themselves are the fields of the config.
No other module reads flags.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_config import all_fields
from tfcomp.config.run_config import make_config

SHIPPED = Path(__file__).parents[1] / "flagfiles"


def define_run_flags() -> flags.FlagValues:
    """All flags of a run, in a table of their own.

    A private table keeps the flags that libraries define when they are
    imported (TFDS, absl.logging) out of our help and our run files.
    """
    values = flags.FlagValues()
    define_settings(all_fields(), values)
    return values


def define_settings(
    fields: Iterable[dataclasses.Field], values: flags.FlagValues
) -> None:
    """Adds a flag for each field that `settings.setting` made."""
    define = {
        bool: flags.DEFINE_boolean,
        int: flags.DEFINE_integer,
        float: flags.DEFINE_float,
        str: flags.DEFINE_string,
    }
    for field in fields:
        define[type(field.default)](
            field.name,
            field.default,
            field.metadata["help"],
            flag_values=values,
        )


def parse_flags(
    arguments: Sequence[str], values: flags.FlagValues
) -> dict[str, object]:
    """Parses arguments (without the program name) into plain values.

    Raises:
        ConfigError: For an ill-formed value.
        RunError: For an unknown flag or a missing flagfile.
    """
    expanded = expand_flagfiles(arguments)
    try:
        rest = values(["tfcomp", *expanded])[1:]
    except flags.UnrecognizedFlagError as error:
        raise _unknown(error.flagname, values) from error
    except flags.IllegalFlagValueError as error:
        raise _ill_formed(values, error) from error
    except flags.Error as error:
        raise RunError(str(error)) from error
    if rest:
        raise RunError(f"unexpected argument {rest[0]!r}: flags start with --")
    return values.flag_values_dict()


def parse_config(arguments: Sequence[str]) -> RunConfig:
    """The run that the arguments describe."""
    return make_config(parse_flags(arguments, define_run_flags()))


def expand_flagfiles(
    arguments: Sequence[str], folder: Path | None = None, inside: tuple = ()
) -> list[str]:
    """Replaces every `--flagfile=PATH` by the lines of that file, in place.

    Later flags win, so flags after a flagfile override it. A path is looked
    up in the working directory, then beside the file that names it, then
    among the flagfiles shipped with tfcomp.

    Raises:
        RunError: If a file is missing, unreadable or includes itself.
    """
    expanded: list[str] = []
    queue = list(arguments)
    while queue:
        argument = queue.pop(0)
        name, equals, path = argument.partition("=")
        if name not in ("--flagfile", "-flagfile"):
            expanded.append(argument)
            continue
        if not equals:
            path = queue.pop(0) if queue else ""
        found = _find_flagfile(path.strip(), folder)
        if found in inside:
            raise RunError(f"--flagfile includes itself: {path!r}")
        lines = _read_flag_lines(found)
        nested = expand_flagfiles(lines, found.parent, (*inside, found))
        expanded.extend(nested)
    return expanded


def list_flagfiles(values: flags.FlagValues | None = None) -> list[str]:
    """Names of the shipped flagfiles.

    Args:
        values: The flags of a command; only files that it can read are
            listed then.
    """
    names = sorted(path.name for path in SHIPPED.glob("*.flags"))
    if values is None:
        return names
    return [name for name in names if _list_names(name) <= set(values)]


def format_flags(config: RunConfig) -> str:
    """A flagfile that repeats the run: every resolved flag, one a line."""
    config = dataclasses.replace(config, resume=False)
    return "".join(f"{line}\n" for line in list_flag_lines(config))


def list_flag_lines(config: RunConfig) -> list[str]:
    """Arguments that describe the run: every resolved flag."""
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in config.to_flags().items()
    ]


def print_help(purpose: str, values: flags.FlagValues) -> None:
    """Prints what a command does, its flags and the shipped flagfiles."""
    print(purpose, "\n\nFlags:")
    for name in values:
        flag = values[name]
        default = "" if flag.default == [] else str(flag.default)
        if flag.boolean:
            default = default.lower()
        print(f"  --{name}={default}\n        {flag.help}")
    print("  --flagfile=FILE\n        Read flags from a file.")
    shipped = list_flagfiles(values)
    if shipped:
        print(f"        Shipped with tfcomp: {', '.join(shipped)}.")


def wants_help(arguments: Sequence[str]) -> bool:
    """Whether the user asked for help rather than for a run."""
    asked = {"--help", "-help", "-h", "--helpfull", "--helpshort"}
    return bool(asked & set(arguments))


def _find_flagfile(path: str, folder: Path | None) -> Path:
    if not path:
        raise RunError("--flagfile must name a file")
    wanted = Path(os.path.expanduser(path))
    places = [Path.cwd(), *([folder] if folder else []), SHIPPED]
    for place in places:
        # `Path.is_file` raises for a name that is too long.
        if os.path.isfile(place / wanted):
            return (place / wanted).resolve()
    shipped = ", ".join(list_flagfiles())
    raise RunError(
        f"--flagfile must be an existing file or one of those shipped "
        f"({shipped}), got {path!r}"
    )


def _read_flag_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--flagfile must be readable text: {error}") from error
    stripped = (line.strip() for line in lines)
    return [ln for ln in stripped if ln and not ln.startswith(("#", "//"))]


def _list_names(flagfile: str) -> set[str]:
    """The flags that a shipped flagfile sets."""
    lines = expand_flagfiles([f"--flagfile={SHIPPED / flagfile}"])
    return {line.lstrip("-").partition("=")[0] for line in lines}


def _unknown(name: str, values: flags.FlagValues) -> RunError:
    close = difflib.get_close_matches(name, list(values), n=1)
    hint = f", did you mean --{close[0]}?" if close else " (see --help)"
    return RunError(f"--{name} is not a flag{hint}")


def _ill_formed(
    values: flags.FlagValues, error: flags.IllegalFlagValueError
) -> Exception:
    """Says in our words which value absl refused."""
    match = re.match(r"flag --(\w+)=(.*?): ", str(error), re.DOTALL)
    if match is None or match[1] not in values:
        return RunError(str(error))
    nouns = {"int": "an integer", "float": "a number", "bool": "true or false"}
    noun = nouns.get(values[match[1]].flag_type(), "a valid value")
    return ConfigError(match[1], f"must be {noun}", match[2])
