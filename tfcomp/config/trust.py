"""Flags that files of others may not set on their own.

A flagfile may come from somebody else. Its settings are used, but what runs
code, connects to another machine or removes a run needs the command line: the
same flag once more, or --trust_flagfile.
"""

from collections.abc import Iterator, Sequence

from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import UntrustedFlag

GUARDED = {
    "plugins": "imports code",
    "scheduler": "connects to another machine, which can run code here",
    "cluster": "starts jobs",
    "overwrite": "removes a run",
}
OFF = ("", "false", "f", "0")
TRUST = "trust_flagfile"
TRUST_FLAG = {
    TRUST: (
        False,
        "Do what flagfiles and runs ask for, even if it imports code, "
        "connects to other machines or removes a run.",
    ),
}


def check_untrusted(arguments: Sequence[str]) -> None:
    """Refuses guarded flags of an expanded command line that only a file sets.

    Raises:
        RunError: The command line neither repeats such a flag nor has
            --trust_flagfile, or a flagfile says that it is trusted.
    """
    flags = list(_split_flags(arguments))
    given = {flag[:2] for flag in flags if not flag[2]}
    for name, value, is_foreign in flags:
        if not is_foreign:
            continue
        if name.removeprefix("no") == TRUST:
            raise RunError(f"a flagfile cannot say --{name}")
        is_on = name in GUARDED and value not in OFF
        if is_on and not given & {(name, value), (TRUST, "true")}:
            raise make_refusal("a flagfile", name, value)


def make_refusal(source: str, name: str, value: str) -> RunError:
    """Returns the error for a flag that a file sets and nobody repeats."""
    return RunError(
        f"{source} has --{name}={value}, which {GUARDED[name]}: if you trust "
        f"it, add --{name}={value} or --trust_flagfile"
    )


def _split_flags(arguments: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yields name, value, and whether a file sets it, for each flag."""
    for argument in arguments:
        name, equals, value = argument.lstrip("-").partition("=")
        value = value.strip() if equals else "true"
        if name in (TRUST, "overwrite"):
            value = {"1": "true", "t": "true"}.get(value.lower(), value.lower())
        yield name, value, isinstance(argument, UntrustedFlag)
