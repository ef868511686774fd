"""Converts command-line flags to plain values and `RunConfig`, and back.

absl parses the flags; the flags themselves are the fields of the config, or
a table of defaults and help texts. No other module reads flags.
"""

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from absl import flags

from tfcomp.config import plugins, run_config
from tfcomp.config.errors import ConfigError, RunError, suggest
from tfcomp.config.flagfiles import expand_flagfiles, find_value, join_values
from tfcomp.config.own_settings import list_declared
from tfcomp.config.run_config import RunConfig, make_config, split_names
from tfcomp.config.settings import CONTROLS, NO_CONTROLS, NOUNS, Settings

MAX_NAME = 100  # characters of a flag
# Flags with a path: shells do not expand `~` in `--log_dir=~/logs`.
PATHS = (
    "log_dir export_dir data data_dir examples_dir output pipeline_root "
    "profile embeddings pack tables"
).split()
# Lines of runs of earlier versions, whose flags are gone.
RETIRED = ("--orthogonal=false", "--interval=student")
DEFINE: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
    list: flags.DEFINE_multi_string,
}


def make_flags(
    table: Mapping[str, tuple[Any, str]], values: flags.FlagValues | None = None
) -> flags.FlagValues:
    """Adds flags of a table; a list is the default of one that may repeat."""
    # By default without the flags of libraries (TFDS, absl.logging).
    values = flags.FlagValues() if values is None else values
    for name, (default, text) in table.items():
        DEFINE[type(default)](name, default, text, flag_values=values)
    return values


def define_settings(
    fields: Iterable[dataclasses.Field], values: flags.FlagValues
) -> flags.FlagValues:
    """Adds a flag for each field that `settings.setting` made."""
    table = {f.name: (f.default, f.metadata["help"]) for f in fields}
    return make_flags(table, values)


def define_run_flags(modules: str = "") -> flags.FlagValues:
    """Returns all flags of a run, also the flags of imported plugins."""
    values = define_settings(run_config.all_fields(), flags.FlagValues())
    add_declared(modules, values)
    return values


def parse_flags(
    arguments: Sequence[str], values: flags.FlagValues
) -> dict[str, Any]:
    """Parses arguments and imports the plugins that they name."""
    expanded = expand_flagfiles(join_values(arguments, values))
    modules = find_value(expanded, "plugins") if "plugins" in values else ""
    plugins.import_plugins(modules)
    if "dataset" in values:  # the flags of a run
        add_declared(modules, values)
    return _parse_expanded(expanded, values)


def parse_record(lines: Sequence[str]) -> dict[str, Any]:
    """Parses flags of a run, as strings if their plugin is not imported."""
    expanded = expand_flagfiles(lines)
    modules = find_value(expanded, "plugins")
    values = define_run_flags(modules)
    if not set(split_names(modules)) <= set(sys.modules):
        pairs = [argument.lstrip("-").partition("=") for argument in expanded]
        make_flags({n: (v, "") for n, _, v in pairs if n not in values}, values)
    return _parse_expanded(expanded, values)


def _parse_expanded(
    expanded: Sequence[str], values: flags.FlagValues
) -> dict[str, Any]:
    expanded = [argument for argument in expanded if argument not in RETIRED]
    for argument in expanded:
        name = argument.lstrip("-").partition("=")[0]
        is_long = argument.startswith("-") and len(name) > MAX_NAME
        if name == "undefok" or is_long:  # absl knows it, or recurses too far
            raise make_unknown_error(name, values)
    try:
        rest = values(["tfcomp", *expanded])[1:]
    except flags.UnrecognizedFlagError as error:
        raise make_unknown_error(error.flagname, values) from error
    except flags.IllegalFlagValueError as error:
        match = re.match(r"flag --(\w+)=(.*?): ", str(error), re.DOTALL)
        if match is None or match[1] not in values:
            raise RunError(str(error)) from error
        noun = NOUNS.get(values[match[1]].flag_type(), "a valid value")
        raise ConfigError(match[1], f"must be {noun}", match[2]) from error
    except (flags.Error, ValueError) as error:
        raise RunError(str(error)) from error
    if rest:
        raise RunError(f"unexpected argument {rest[0]!r}: flags start with --")
    settings = values.flag_values_dict()
    for name, value in settings.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and CONTROLS.search(text):
                raise ConfigError(name, f"must be {NO_CONTROLS}", text)
    for name in filter(settings.__contains__, PATHS):
        if "://" in settings[name]:
            raise ConfigError(name, "must be on this machine", settings[name])
        settings[name] = os.path.expanduser(settings[name])
    return settings


def add_declared(modules: str, values: flags.FlagValues) -> None:
    """Adds the flags of imported plugins; RunError if a name is taken."""
    for field in list_declared(split_names(modules)):
        if field.name not in values:
            define_settings([field], values)
        elif values[field.name].help != field.metadata["help"]:
            raise RunError(f"--plugins: --{field.name} is a flag already")


def make_unknown_error(name: str, values: flags.FlagValues) -> RunError:
    """Returns the error for an unknown flag, with the closest known one."""
    hint = suggest(name, values, "--")
    return RunError(f"--{name} is not a flag{hint or ' (see --help)'}")


def parse_config(arguments: Sequence[str]) -> RunConfig:
    """Returns the run that the arguments describe."""
    return make_config(parse_flags(arguments, define_run_flags()))


def format_flags(config: RunConfig) -> str:
    """Returns a flagfile that repeats the run: every flag, one a line."""
    config = dataclasses.replace(config, resume=False, overwrite=False)
    return "".join(f"{line}\n" for line in list_flag_lines(config))


def list_flag_lines(settings: Settings) -> list[str]:
    """Returns every flag of a run, or of other settings, as an argument."""
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in settings.to_flags().items()
    ]
