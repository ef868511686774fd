"""Imports plugins, and refuses what files of others may not ask for.

Plugins are modules of users that register their own parts: they run code. A
flagfile or a finished run may come from somebody else. What runs code, connects
to another machine or removes a run needs the command line: the same flag once
more, or --trust_flagfile.
"""

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError, describe_plugin_error
from tfcomp.config.flagfiles import UntrustedFlag
from tfcomp.config.own_settings import IMPORTING
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import split_names

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
# Flag of the commands that load runs.
PLUGIN_FLAG = {"plugins": ("", "Modules with parts of your own; as in train.")}


def import_plugins(modules: str) -> None:
    """Imports comma-separated modules, which register their own parts."""
    for name in split_names(modules):
        # Like `python -m`, look in the current folder, but after all others.
        if "" not in sys.path:
            sys.path.append("")
        IMPORTING.append(name)
        try:
            with quiet_startup():
                importlib.import_module(name)
        except ModuleNotFoundError as error:
            rule = f"must name modules that can be imported ({error})"
            raise ConfigError("plugins", rule, modules) from error
        except Exception as error:
            reason = f"{name} failed: {describe_plugin_error(error)}"
            raise RunError(f"--plugins: {reason}") from error
        finally:
            IMPORTING.pop()


def admit_plugins(
    run: Path, modules: str, flags: Mapping[str, Any] | None = None
) -> None:
    """Refuses a run unless its plugins are imported, or `flags` allow it."""
    if flags is not None:
        import_plugins(flags["plugins"])
        import_plugins(modules if flags.get(TRUST) else "")
    if missing := [n for n in split_names(modules) if n not in sys.modules]:
        raise make_refusal(f"--run={run}", "plugins", ",".join(missing))


def check_untrusted(arguments: Sequence[str]) -> None:
    """Refuses guarded flags that only a file sets, in expanded arguments."""
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
