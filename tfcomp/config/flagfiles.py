"""Flagfiles: one flag a line, and comments that begin with # or //."""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from absl import flags

from tfcomp.config.errors import MAX_SHOWN, RunError, suggest

SHIPPED = (Path(__file__).parents[1] / "flagfiles").resolve()
SUFFIX = ".flags"
# Flags that take positional arguments, separated by commas.
TARGETS = ("runs", "run", "profile", "search", "embeddings")
# A flagfile may come from a stranger. What it must not do by itself: run code,
# or connect to a machine that can run code here.
COMMAND_LINE_ONLY = ("plugins", "scheduler")
_folders = [SHIPPED]  # where flagfiles are looked up by name


def add_folder(folder: Path) -> None:
    """Adds a folder of flagfiles that are found by name, and trusted."""
    if folder not in _folders:
        _folders.append(folder)


def expand_flagfiles(arguments: Sequence[str]) -> list[str]:
    """Replaces every `--flagfile=PATH` by the lines of that file, in place.

    Raises:
        RunError: If a file does not exist, cannot be read or includes itself,
            or if one that is not shipped sets a flag of `COMMAND_LINE_ONLY`
            that the arguments themselves do not set.
    """
    given = {_split_flag(argument)[0] for argument in arguments}
    return _expand(arguments, given, files=())


def _expand(
    arguments: Sequence[str], given: Collection[str], files: tuple[Path, ...]
) -> list[str]:
    """Expands arguments, which are lines of the last of the nested `files`."""
    beside = [path.parent for path in files[-1:]]
    is_foreign = bool(files) and not _is_shipped(files[-1])
    expanded: list[str] = []
    for argument in arguments:
        name, value = _split_flag(argument)
        if name == "flagfile":
            file = _find_flagfile(value, beside)
            if file in files:
                raise RunError(f"--flagfile includes itself: {value!r}")
            lines = _read_flag_lines(file)
            expanded += _expand(lines, given, (*files, file))
        elif is_foreign and name in COMMAND_LINE_ONLY:
            # The command line decides; an empty value asks for nothing.
            if value and name not in given:
                raise RunError(
                    f"{files[-1]} has {argument}: if you trust it, say so on "
                    "the command line"
                )
        else:
            expanded.append(argument)
    return expanded


def _split_flag(argument: str) -> tuple[str, str]:
    """Splits `--name=value`; a flag without a value is switched on."""
    name, equals, value = argument.lstrip("-").partition("=")
    if equals:
        return name, value.strip()
    return name, "" if name == "flagfile" else "true"


def _is_shipped(file: Path) -> bool:
    return any(folder in file.parents for folder in _folders)


def find_value(expanded: Sequence[str], flag: str) -> str:
    """Returns the last value of a flag, empty if it is absent."""
    pairs = (argument.lstrip("-").partition("=") for argument in expanded)
    return next((v for name, _, v in reversed([*pairs]) if name == flag), "")


def list_flagfiles(known: Iterable[str] | None = None) -> list[str]:
    """Returns names of shipped flagfiles, or of those with `known` flags."""
    names = sorted(path.name for path in SHIPPED.glob(f"*{SUFFIX}"))
    if known is None:
        return names
    expanded = {
        n: expand_flagfiles([f"--flagfile={SHIPPED / n}"]) for n in names
    }
    return [
        name
        for name, lines in expanded.items()
        if {ln.lstrip("-").partition("=")[0] for ln in lines} <= set(known)
    ]


def _find_flagfile(path: str, beside: Sequence[Path]) -> Path:
    if not path:
        raise RunError("--flagfile must name a file")
    wanted = os.path.expanduser(path)
    for name in (wanted, wanted + SUFFIX):
        for folder in (*beside, Path.cwd(), *_folders):
            # `Path.is_file` raises for a name that is too long.
            if os.path.isfile(folder / name):
                return (folder / name).resolve()
    shipped = list_flagfiles()
    known = [*shipped, *(p.name for p in Path.cwd().glob(f"*{SUFFIX}"))]
    stems = [name.removesuffix(SUFFIX) for name in known]
    # Without the ending, which makes all names alike.
    hint = suggest(path.removesuffix(SUFFIX), stems)
    rule = "--flagfile must be an existing file or one of those shipped"
    names = "" if hint else f" ({', '.join(shipped)})"
    raise RunError(f"{rule}{names}, got {path!r}{hint}")


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
    stripped = (line.strip() for line in text.splitlines())
    return [ln for ln in stripped if ln and not ln.startswith(("#", "//"))]


def expand_positionals(
    arguments: Sequence[str], values: flags.FlagValues
) -> list[str]:
    """Replaces positional arguments by flags; flagfiles come first."""
    joined = join_values(arguments, values)
    words = [a for a in joined if not a.lstrip("-") or a[0] != "-"]
    given = [a for a in joined if a.lstrip("-") and a[0] == "-"]
    if not words:
        return given
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and name in values:
            hint = f"did you mean --{word}?"
            raise RunError(f"unexpected argument {word!r}, {hint}")
    if "dataset" in values:  # a command with the flags of a run
        return [*(f"--flagfile={word}" for word in words), *given]
    target = next((name for name in TARGETS if name in values), "")
    if target and not find_value(given, target):
        return [*given, f"--{target}={','.join(words)}"]
    rule = f"--{target} says it already" if target else "flags start with --"
    raise RunError(f"unexpected argument {words[0]!r}: {rule}")


def join_values(
    arguments: Sequence[str], values: flags.FlagValues
) -> list[str]:
    """Rewrites `--flag value` as `--flag=value`; other words stay."""
    joined: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        following = rest[0] if rest else ""
        if _needs_value(argument, following, values) and rest:
            argument = f"{argument}={rest.pop(0)}"
        joined.append(argument)
    return joined


def _needs_value(
    argument: str, following: str, values: flags.FlagValues
) -> bool:
    """Returns True for a flag whose value is the following argument."""
    name = argument.lstrip("-")
    if not name or not argument.startswith("-") or "=" in name:
        return False
    known = [n for n in (name, name.removeprefix("no")) if n in values]
    if not known:
        # A plugin that is imported later may declare it, as a switch or not.
        return not following.startswith("--")
    return not any(values[n].boolean for n in known)
