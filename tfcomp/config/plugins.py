"""Modules that users name to add their own parts, and whose they are.

A plugin runs code. Those named on the command line are asked for; those that
a flagfile or a finished run names, which may be somebody else's, are not,
unless the command line has --trust_plugins.
"""

import importlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfcomp.config import errors
from tfcomp.config.flagfiles import Foreign
from tfcomp.config.own_settings import IMPORTING
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import split_names

# Of the commands that load runs.
PLUGIN_FLAG = {"plugins": ("", "Modules with parts of your own; as in train.")}
TRUSTED = ("trust_plugins", "trust_plugins=true", "trust_plugins=1")
# Of all commands that import plugins.
TRUST_FLAG = {
    "trust_plugins": (
        False,
        "Import the plugins that flagfiles and runs name, too.",
    )
}


def import_plugins(modules: str) -> None:
    """Imports comma-separated modules, which register their own parts.

    What they write to stderr meanwhile is held back (see `quiet_startup`).

    Raises:
        ConfigError: If one of them is not found.
        RunError: If one of them fails while it is imported.
    """
    for name in split_names(modules):
        # An installed command does not look for modules in the current folder,
        # as `python -m` does. No file there takes the place of one of others.
        if "" not in sys.path:
            sys.path.append("")
        with quiet_startup():
            IMPORTING.append(name)
            try:
                spec = importlib.util.find_spec(name)
                if spec is not None and spec.origin is not None:
                    place = spec.origin.removesuffix(f"{os.sep}__init__.py")
                    errors.PLUGINS[name] = place
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                reason = errors.describe_plugin_error(error) or error
                rule = f"must name modules that can be imported ({reason})"
                raise errors.ConfigError("plugins", rule, modules) from error
            except Exception as error:
                reason = errors.describe_plugin_error(error)
                reason = reason or f"{name}: {error}"
                raise errors.RunError(f"--plugins: {reason}") from error
            finally:
                IMPORTING.pop()


def admit_plugins(
    run: Path, modules: str, flags: Mapping[str, Any] | None = None
) -> None:
    """Refuses a run that asks for plugins which nobody else has asked for.

    What `plugins` and `trust_plugins` of `flags` allow is imported first.
    """
    if flags is not None:
        import_plugins(flags["plugins"])
        import_plugins(modules if flags["trust_plugins"] else "")
    if missing := [n for n in split_names(modules) if n not in sys.modules]:
        raise _refuse(f"--run={run}", ",".join(missing))


def check_foreign_plugins(arguments: Sequence[str]) -> None:
    """Refuses plugins that only a flagfile names, without --trust_plugins."""
    trusted = any(a.lstrip("-").lower() in TRUSTED for a in arguments)
    given = [a.lstrip("-") for a in arguments if not isinstance(a, Foreign)]
    for argument, after in itertools.pairwise([*arguments, ""]):
        line = argument.lstrip("-")
        name, equals, modules = line.partition("=")
        # Without "=" the value is the next line.
        is_asked_for = trusted or (equals and line in given)
        if isinstance(argument, Foreign):
            if name == "trust_plugins":
                raise errors.RunError("a flagfile cannot say --trust_plugins")
            if name == "plugins" and line != "plugins=" and not is_asked_for:
                raise _refuse("a flagfile", modules or after)


def _refuse(run: str, modules: str) -> errors.RunError:
    return errors.RunError(
        f"{run} asks for code of the modules {modules}: if you trust them, "
        f"add --plugins={modules} or --trust_plugins"
    )
