"""Modules that users name to add their own parts, and whose they are.

A plugin runs code. Those named on the command line are asked for; those that
a run has recorded, which may be somebody else's, are not.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError
from tfcomp.config.failures import PLUGINS
from tfcomp.config.failures import describe_plugin_error
from tfcomp.config.failures import locate_in_plugin
from tfcomp.config.flagfiles import Recorded
from tfcomp.config.quiet import quiet_startup

# Of the commands that read runs.
PLUGIN_FLAGS = {
    "plugins": (
        "",
        "Python modules, separated by commas, that are imported first and "
        "register parts of your own.",
    ),
}
# Of all commands that can import plugins.
TRUST_FLAG = {
    "trust_plugins": (
        False,
        "Import the plugins that are named in the files of runs, perhaps of "
        "somebody else.",
    ),
}


def split_names(plugins: str) -> list[str]:
    """The modules that `--plugins` names."""
    return [name.strip() for name in plugins.split(",") if name.strip()]


def import_plugins(modules: str) -> None:
    """Imports comma-separated modules, which register their own parts.

    What they write to stderr meanwhile is held back (see `quiet_startup`).

    Raises:
        ConfigError: If one of them is not found.
        RunError: If one of them fails while it is imported.
    """
    for name in split_names(modules):
        if name in sys.modules:
            continue
        with quiet_startup():
            try:
                _note_source(name)
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                where = locate_in_plugin(name, error)
                rule = f"must name modules that can be imported ({error}"
                raise ConfigError(
                    "plugins", f"{rule} in {where})", modules
                ) from error
            except Exception as error:
                where = locate_in_plugin(name, error)
                text = describe_plugin_error(name, error, where)
                raise RunError(text) from error


def admit_plugins(run: Path, modules: str, trusted: bool = False) -> None:
    """Imports the plugins of a run if it is trusted.

    Args:
        run: Its folder.
        modules: The plugins that its `run.flags` names.
        trusted: Whether to import those that have not been asked for.

    Raises:
        RunError: If there are such, and the run is not trusted.
    """
    if trusted:
        import_plugins(modules)
    missing = [n for n in split_names(modules) if n not in sys.modules]
    if missing:
        raise RunError(_refuse(f"--run={run}", missing, modules))


def check_recorded_plugins(arguments: Sequence[str], trusted: bool) -> None:
    """Refuses plugins that only the flagfile of an earlier run names.

    Args:
        arguments: Those of the command line, flagfiles expanded.
        trusted: Whether `--trust_plugins` is among them.

    Raises:
        RunError: If neither the plugins nor trust are given beside it.
    """
    recorded = [a.lstrip("-") for a in arguments if isinstance(a, Recorded)]
    given = [a.lstrip("-") for a in arguments if not isinstance(a, Recorded)]
    for line in recorded:
        name, equals, modules = line.partition("=")
        if name == "trust_plugins":
            raise RunError("a flagfile of a run cannot trust that run itself")
        # Without "=" the value is the next line.
        is_asked_for = trusted or (equals and line in given)
        if name == "plugins" and line != "plugins=" and not is_asked_for:
            names = split_names(modules)
            raise RunError(_refuse("the flagfile of a run", names, modules))


def _refuse(run: str, names: Sequence[str], modules: str) -> str:
    return (
        f"{run} asks for code of the modules {', '.join(names)}: if you trust "
        f"them, add --plugins={modules} or --trust_plugins"
    )


def _note_source(name: str) -> None:
    """Keeps where a plugin lies, to find it in the traceback of an error."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin is not None:
        is_package = bool(spec.submodule_search_locations)
        path = os.path.dirname(spec.origin) if is_package else spec.origin
        PLUGINS[path] = name
