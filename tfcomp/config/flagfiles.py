"""Flagfiles: one flag a line, and comments that begin with # or //."""

import os
from collections.abc import Container, Sequence
from pathlib import Path

from tfcomp.config.errors import MAX_SHOWN, RunError, suggest

SHIPPED = (Path(__file__).parents[1] / "flagfiles").resolve()
SUFFIX = ".flags"
# A flagfile may come from a stranger. What it must not do by itself: run code,
# or connect to a machine that can run code here.
COMMAND_LINE_ONLY = ("plugins", "scheduler")
_folders = [SHIPPED]  # where flagfiles are looked up by name


def add_folder(folder: Path) -> None:
    """Adds a folder of flagfiles that are found by name, and trusted."""
    if folder not in _folders:
        _folders.append(folder)


def list_flagfiles(known: Container[str] | None = None) -> list[str]:
    """Lists the flagfiles that are shipped with tfcomp.

    Args:
        known: The flags of a command, to list the files that have no others.
    """
    names = sorted(path.name for path in SHIPPED.glob(f"*{SUFFIX}"))
    if known is None:
        return names

    suitable = []
    for name in names:
        lines = expand_flagfiles([f"--flagfile={SHIPPED / name}"])
        if all(split_flag(line)[0] in known for line in lines):
            suitable.append(name)
    return suitable


def split_flag(argument: str) -> tuple[str, str | None]:
    """Splits `--name=value`; the value of `--name` is None."""
    name, equals, value = argument.lstrip("-").partition("=")
    return name, value if equals else None


def find_value(arguments: Sequence[str], flag: str) -> str:
    """Returns the last value of a flag, empty if there is none."""
    found = ""
    for argument in arguments:
        name, value = split_flag(argument)
        if name == flag:
            found = value or ""
    return found


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
            expanded += _expand(_read_flag_lines(file), typed, [*files, file])
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
            # `Path.is_file` raises for a name that is too long.
            if os.path.isfile(folder / name):
                return (folder / name).resolve()

    shipped = list_flagfiles()
    # Without the ending, which makes all names alike.
    stems = [name.removesuffix(SUFFIX) for name in shipped]
    hint = suggest(path.removesuffix(SUFFIX), stems)
    names = "" if hint else f" ({', '.join(shipped)})"
    rule = "--flagfile must be an existing file or one of those shipped"
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
    lines = []
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith(("#", "//")):
            lines.append(line)
    return lines
