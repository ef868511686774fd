"""Commands, their help, and their flags, which become values or a `RunConfig`.

absl holds the flags, which are the fields of the config, or a table of defaults
and help texts. A flagfile has a flag a line, and comments that begin with # or
//. No other module reads flags.
"""

import dataclasses
import os
import sys
import textwrap
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import flags

from tfcomp.config.errors import MAX_SHOWN, ConfigError, RunError, suggest
from tfcomp.config.plugins import Registry, import_plugins
from tfcomp.config.run_config import (
    COMMON_FLAGS,
    PARTS,
    RunConfig,
    all_fields,
    make_config,
)
from tfcomp.config.settings import (
    CONTROLS,
    NO_CONTROLS,
    NOUNS,
    Settings,
    list_declared,
    split_names,
)

SHIPPED = (Path(__file__).parents[1] / "flagfiles").resolve()
SUFFIX = ".flags"
FULL_HELP = "--helpfull"
HELP = {"--help", "-help", "-h", FULL_HELP, "--helpshort"}
MARGIN = " " * 8  # before the description of a flag
FlagTable = Mapping[str, tuple[Any, str]] | Callable[[], flags.FlagValues]
# A flagfile may come from a stranger. What it must not do by itself: run code,
# or connect to a machine that can run code here.
COMMAND_LINE_ONLY = ("plugins", "scheduler")
PART_FLAGS = ("dataset", "model", "encoding")
RARE_FLAGS = ("materialize",)  # of commands, which only FULL_HELP lists
_folders = [SHIPPED]  # where flagfiles are looked up by name
TYPED = "typed flags"  # no name of a flag
# Flags that take positional arguments, separated by commas.
TARGETS = ("runs", "run", "profile", "search", "embeddings")
# Flags with a path: shells do not expand `~` in `--log_dir=~/logs`.
PATHS = (
    "log_dir export_dir data data_dir examples_dir output pipeline_root "
    "profile embeddings pack tables"
).split()
# Lines of runs of earlier versions, whose flags are gone.
RETIRED = ("--orthogonal=false", "--interval=student", "--start=default")
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
    """Adds flags of a table.

    Args:
        table: Default and help by name. A flag whose default is a list may be
            given several times.
        values: Flags to add them to. By default they are the only ones, without
            the flags of libraries.
    """
    if values is None:
        values = flags.FlagValues()
    for name, (default, text) in table.items():
        DEFINE[type(default)](
            name,
            default,
            text,
            flag_values=values,
            module_name=__name__,  # absl would search for it, flag by flag
        )
    return values


def define_settings(
    fields: Iterable[dataclasses.Field],
    values: flags.FlagValues,
) -> flags.FlagValues:
    """Adds a flag for each field that `settings.setting` made.

    Args:
        fields: The settings.
        values: Flags to add them to.
    """
    table = {}
    for field in fields:
        table[field.name] = (field.default, field.metadata["help"])
    return make_flags(table, values)


def define_run_flags(modules: str = "") -> flags.FlagValues:
    """Returns all flags of a run, also the flags of imported plugins."""
    values = define_settings(all_fields(), flags.FlagValues())
    add_declared(modules, values)
    return values


def add_declared(modules: str, values: flags.FlagValues) -> None:
    """Adds the flags of imported plugins.

    Args:
        modules: The value of `--plugins`.
        values: Flags to add them to.

    Raises:
        RunError: If a name is taken.
    """
    for field in list_declared(split_names(modules)):
        name = field.name
        if name not in values:
            define_settings([field], values)
        elif values[name].help != field.metadata["help"]:
            raise RunError(f"--plugins: --{name} is a flag already")


def parse_flags(
    arguments: Sequence[str], values: flags.FlagValues
) -> dict[str, Any]:
    """Parses arguments and imports the plugins that they name.

    Args:
        arguments: Flags as `--name=value` or `--name value`. Other words are
            flagfiles of commands with the flags of a run, else the value of a
            flag in `TARGETS`.
        values: The flags of the command, with their default values.

    Returns:
        The value of every flag. With the flags of a run, `TYPED` has the names
        of those that stand in the arguments and not in a flagfile.

    Raises:
        ConfigError: A value has another type than its flag.
        RunError: There is no such flag or flagfile, or a plugin fails.
    """
    joined = _join_arguments(arguments, values)
    expanded = expand_flagfiles(joined)
    modules = find_value(expanded, "plugins")
    import_plugins(modules)
    if "dataset" not in values:
        return _parse_expanded(expanded, values)

    add_declared(modules, values)
    settings = _parse_expanded(expanded, values)
    settings[TYPED] = [split_flag(argument)[0] for argument in joined]
    return settings


def parse_record(lines: Sequence[str]) -> dict[str, Any]:
    """Parses flags of a run, as strings if their plugin is not imported."""
    expanded = expand_flagfiles(lines)
    modules = find_value(expanded, "plugins")
    values = define_run_flags(modules)
    is_imported = set(split_names(modules)) <= set(sys.modules)
    if not is_imported:
        for argument in expanded:
            name, value = split_flag(argument)
            if name not in values:
                table = {name: (value or "", "")}
                make_flags(table, values)
    return _parse_expanded(expanded, values)


def _join_arguments(
    arguments: Sequence[str], values: flags.FlagValues
) -> list[str]:
    """Rewrites `--flag value`, and words without a flag, as `--flag=value`."""
    given: list[str] = []
    words: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-") or not argument.strip("-"):
            words.append(argument)
            continue
        if rest and _needs_value(argument, rest[0], values):
            argument = f"{argument}={rest.pop(0)}"
        given.append(argument)
    if not words:
        return given

    if "dataset" in values:
        # Flags override a flagfile, wherever it stands.
        flagfiles = [f"--flagfile={word}" for word in words]
        return flagfiles + given
    targets = [name for name in TARGETS if name in values]
    target = ""
    if targets:
        target = targets[0]
    if target and not find_value(given, target):
        return [*given, f"--{target}={','.join(words)}"]
    rule = "flags start with --"
    if target:
        rule = f"--{target} says it already"
    raise RunError(f"unexpected argument {words[0]!r}: {rule}")


def _needs_value(
    argument: str, following: str, values: flags.FlagValues
) -> bool:
    """Checks whether the following argument is the value of a flag."""
    name, value = split_flag(argument)
    if value is not None or _find_switch(name, values):
        return False
    # A plugin that is imported later may declare it, as a switch or not.
    return name in values or not following.startswith("--")


def _find_switch(name: str, values: flags.FlagValues) -> str:
    """Returns the flag that `--name` or `--noname` switches, if any."""
    positive = name.removeprefix("no")
    for switch in (name, positive):
        if switch in values and values[switch].boolean:
            return switch
    return ""


def _parse_expanded(
    expanded: Sequence[str], values: flags.FlagValues
) -> dict[str, Any]:
    for argument in expanded:
        if argument not in RETIRED:
            _parse_flag(argument, values)
    values.mark_as_parsed()

    settings = values.flag_values_dict()
    for name, value in settings.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and CONTROLS.search(text):
                raise ConfigError(name, f"must be {NO_CONTROLS}", text)
        if name in PATHS:
            if "://" in value:
                raise ConfigError(name, "must be on this machine", value)
            settings[name] = os.path.expanduser(value)
    return settings


def _parse_flag(argument: str, values: flags.FlagValues) -> None:
    """Gives a flag the value of `--name=value`, `--switch` or `--noswitch`."""
    name, value = split_flag(argument)
    if value is None:
        switch = _find_switch(name, values)
        if switch:
            value = str(name == switch).lower()
            name = switch
    if name not in values:
        raise make_unknown_error(name, values)
    if value is None:
        raise RunError(f"Missing value for flag {argument}")

    flag = values[name]
    try:
        flag.parse(value)
    except flags.IllegalFlagValueError as error:
        noun = NOUNS.get(flag.flag_type(), "a valid value")
        raise ConfigError(name, f"must be {noun}", value) from error
    flag.using_default_value = False


def make_unknown_error(name: str, values: flags.FlagValues) -> RunError:
    """Makes the error for an unknown flag, with the closest known one.

    Args:
        name: The unknown flag.
        values: The flags of the command.
    """
    hint = suggest(name, values, "--")
    if not hint:
        hint = " (see --help)"
    return RunError(f"--{name} is not a flag{hint}")


def parse_config(arguments: Sequence[str]) -> RunConfig:
    """Returns the run that the arguments describe."""
    values = define_run_flags()
    return make_config(parse_flags(arguments, values))


def format_flags(config: RunConfig) -> str:
    """Returns a flagfile that repeats the run: every flag, one a line."""
    config = dataclasses.replace(
        config,
        resume=False,
        overwrite=False,
    )
    lines = list_flag_lines(config)
    return "".join(f"{line}\n" for line in lines)


def list_flag_lines(settings: Settings) -> list[str]:
    """Returns every flag of a run, or of other settings, as an argument."""
    lines = []
    for name, value in settings.to_flags().items():
        if isinstance(value, bool):
            value = str(value).lower()
        lines.append(f"--{name}={value}")
    return lines


def add_folder(folder: Path) -> None:
    """Adds a folder of flagfiles that are found by name, and trusted."""
    if folder not in _folders:
        _folders.append(folder)


def list_flagfiles() -> list[str]:
    """Lists the flagfiles that are shipped with tfcomp."""
    return sorted(path.name for path in SHIPPED.glob(f"*{SUFFIX}"))


def split_flag(argument: str) -> tuple[str, str | None]:
    """Splits `--name=value`; the value of `--name` is None."""
    name, equals, value = argument.lstrip("-").partition("=")
    if not equals:
        return name, None
    return name, value


def find_value(arguments: Sequence[str], flag: str) -> str:
    """Returns the last value of a flag, empty if there is none.

    Args:
        arguments: Flags, as `--name=value`.
        flag: A name.
    """
    last = ""
    for argument in arguments:
        name, value = split_flag(argument)
        if name == flag:
            last = value or ""
    return last


def expand_flagfiles(arguments: Sequence[str]) -> list[str]:
    """Replaces every `--flagfile=PATH` by the lines of that file, in place.

    Args:
        arguments: Flags, as `--name=value`.

    Raises:
        RunError: If a file does not exist, cannot be read or includes itself,
            or if one that is not shipped sets a flag of `COMMAND_LINE_ONLY`
            that the arguments themselves do not set.
    """
    typed = {split_flag(argument)[0] for argument in arguments}
    return _expand(arguments, typed, files=[])


def _expand(
    arguments: Sequence[str], typed: Container[str], files: list[Path]
) -> list[str]:
    """Expands arguments, which are lines of the last of the nested `files`."""
    beside = [path.parent for path in files[-1:]]
    is_foreign = bool(files) and not _is_shipped(files[-1])
    expanded: list[str] = []
    for argument in arguments:
        name, value = split_flag(argument)
        if name == "flagfile":
            file = _find_flagfile(value or "", beside)
            if file in files:
                raise RunError(f"--flagfile includes itself: {value!r}")
            lines = _read_flag_lines(file)
            expanded += _expand(lines, typed, [*files, file])
        elif is_foreign and name in COMMAND_LINE_ONLY:
            # The command line decides; an empty value asks for nothing.
            if value != "" and name not in typed:
                raise RunError(
                    f"{files[-1]} has {argument}: if you trust it, say so on "
                    "the command line"
                )
        else:
            expanded.append(argument)
    return expanded


def _is_shipped(file: Path) -> bool:
    return any(folder in file.parents for folder in _folders)


def _find_flagfile(path: str, beside: Sequence[Path]) -> Path:
    if not path:
        raise RunError("--flagfile must name a file")

    wanted = os.path.expanduser(path)
    for name in (wanted, wanted + SUFFIX):
        for folder in (*beside, Path.cwd(), *_folders):
            file = folder / name
            # `Path.is_file` raises for a name that is too long.
            if os.path.isfile(file):
                return file.resolve()

    shipped = list_flagfiles()
    # Without the ending, which makes all names alike.
    stems = [name.removesuffix(SUFFIX) for name in shipped]
    hint = suggest(path.removesuffix(SUFFIX), stems)
    rule = "--flagfile must be an existing file or one of those shipped"
    if not hint:
        rule += f" ({', '.join(shipped)})"
    raise RunError(f"{rule}, got {path!r}{hint}")


def _read_flag_lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8-sig")  # editors of Windows begin so
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--flagfile must be readable text: {error}") from error

    lines = split_lines(text)
    for line in lines:
        if not line.startswith("-"):
            rule = "must have one --flag=value in each line"
            raise RunError(f"{path} {rule}, got {line[:MAX_SHOWN]!r}")
    return lines


def split_lines(text: str) -> list[str]:
    """Returns the lines of a flagfile that are no comments."""
    lines = []
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith(("#", "//")):
            lines.append(line)
    return lines


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
        return make_flags(self.table)

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

        settings = parse_flags(arguments, values)
        # Figures go to files: no window is opened, whatever is set up.
        os.environ["MPLBACKEND"] = "agg"
        return self.action(settings)

    def _print_help(
        self, arguments: Sequence[str], values: flags.FlagValues
    ) -> None:
        """Prints the help: purpose, flags, and shipped flagfiles."""
        others = [word for word in arguments if word not in HELP]
        modules = find_value(others, "plugins")
        import_plugins(modules)
        add_declared(modules, values)

        groups = {"Flags": list(values)}
        is_run = "dataset" in values
        if is_run:
            groups = _group_flags(values)
        if is_run and FULL_HELP not in arguments:
            expanded = expand_flagfiles(_join_arguments(others, values))
            names = [find_value(expanded, flag) for flag in PART_FLAGS]
            groups = _select_common(groups, self.parts, names)
        print(format_help(self.purpose or "", groups, values))


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

    shipped = list_flagfiles()
    stems = [name.removesuffix(SUFFIX) for name in shipped]
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
    """Selects flags that are used often, and flags of some parts.

    Args:
        groups: Names of flags by title.
        parts: Titles in small letters; flags of others are left out.
        names: Models, codes and datasets whose own flags are listed, too.
    """
    common = set(COMMON_FLAGS)
    for field in all_fields():
        if not set(names).isdisjoint(field.metadata["used_by"]):
            common.add(field.name)

    own = [name for name in groups["Flags"] if name not in RARE_FLAGS]
    selected = {"Flags": own}
    for title, flag_names in groups.items():
        if title.lower() in parts:
            selected[title] = [name for name in flag_names if name in common]
    selected["Plugins and flagfiles"] = ["plugins"]
    return selected
