"""Flagfiles, one flag a line, and comments that begin with # or //.

The first and last line of `run.flags` are a checksum: every flag has a default,
so a file that lost lines would describe another run. Files of versions before
0.2.0 have none.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from absl import flags

from tfcomp.config.errors import MAX_SHOWN, RunError, suggest

SHIPPED = (Path(__file__).parents[1] / "flagfiles").resolve()
_folders = [SHIPPED]  # where flagfiles are looked up by name
SUFFIX = ".flags"
# Flags that take positional arguments, separated by commas.
TARGETS = ("runs", "run", "profile", "search", "embeddings")
_SEAL = re.compile(r"^#= \d+ flags, sha256 [0-9a-f]{16}$", re.MULTILINE)


class UntrustedFlag(str):
    """A line of a flagfile that is not shipped (see `plugins`)."""


def add_folder(folder: Path) -> None:
    """Adds a folder of flagfiles that are found by name, and trusted."""
    if folder not in _folders:
        _folders.append(folder)


def expand_flagfiles(
    arguments: Sequence[str], inside: tuple[Path, ...] = ()
) -> list[str]:
    """Replaces every `--flagfile=PATH` by the lines of that file, in place."""
    expanded: list[str] = []
    for argument in arguments:
        name, _, path = argument.partition("=")
        if name not in ("--flagfile", "-flagfile"):
            expanded.append(argument)
            continue
        found = _find_flagfile(path.strip(), [p.parent for p in inside[-1:]])
        if found in inside:
            raise RunError(f"--flagfile includes itself: {path!r}")
        files = (*inside, found)
        lines = expand_flagfiles(_read_flag_lines(found), files)
        is_shipped = all(not set(_folders).isdisjoint(f.parents) for f in files)
        expanded += lines if is_shipped else map(UntrustedFlag, lines)
    return expanded


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
    if damage := find_damage(text):
        raise RunError(f"{path} is damaged ({damage})")
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


def seal(text: str) -> str:
    """Returns a flagfile with the checksum of its flags around it."""
    line = _format_seal(text)
    return f"{line}\n{text}{line}\n"


def find_damage(text: str) -> str:
    """Returns the reason why a flagfile was changed or cut, or nothing."""
    if set(_SEAL.findall(text)) <= {_format_seal(text)}:
        return ""
    return (
        "lines are missing or were changed; if you changed them, remove "
        "the lines that begin with #="
    )


def _format_seal(text: str) -> str:
    lines = split_lines(text)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return f"#= {len(lines)} flags, sha256 {digest[:16]}"


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
    joined, rest = [], [*arguments]
    while rest:
        argument, *rest = rest
        name = argument.lstrip("-")
        known = [n for n in (name, name.removeprefix("no")) if n in values]
        # A plugin that is imported later may declare an unknown switch.
        is_alone = not known and "".join(rest[:1]).startswith("--")
        is_switch = is_alone or any(values[n].boolean for n in known)
        if argument[:1] == "-" and name and "=" not in name and not is_switch:
            argument, rest = "=".join([argument, *rest[:1]]), rest[1:]
        joined.append(argument)
    return joined
