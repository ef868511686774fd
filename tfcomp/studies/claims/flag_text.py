"""Flags of a finished run, read from its `run.flags`."""

from typing import Any

from tfcomp.config.run_config import RunConfig

Flags = dict[str, Any]


def parse_run_flags(text: str) -> tuple[Flags, dict[str, str]]:
    """Flags and comments of a `run.flags`, whatever version wrote it.

    A flag that the file lacks has its default; one that this version does not
    know is kept as text.

    Raises:
        ValueError: If a number is none.
    """
    flags = RunConfig().to_flags()
    origin = {}
    for line in text.splitlines():
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            origin[name] = value
        elif line.startswith("--"):
            name, _, value = line[2:].partition("=")
            kind = type(flags.get(name, ""))
            flags[name] = value == "true" if kind is bool else kind(value)
    return flags, origin
