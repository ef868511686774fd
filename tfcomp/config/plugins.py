"""Imports plugins: modules of users that register their own parts.

Plugins run code. Those that only a flagfile or a finished run names are
imported only if the command line has --trust_flagfile.
"""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError, describe_plugin_error
from tfcomp.config.own_settings import IMPORTING
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import split_names
from tfcomp.config.trust import TRUST, make_refusal

# Flag of the commands that load runs.
PLUGIN_FLAG = {"plugins": ("", "Modules with parts of your own; as in train.")}


def import_plugins(modules: str) -> None:
    """Imports comma-separated modules, which register their own parts.

    Raises ConfigError if a module is not found, RunError if it fails.
    """
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
    """Refuses a run whose plugins are not imported.

    Imports first what `flags` allow (`plugins`, `trust_flagfile`).
    """
    if flags is not None:
        import_plugins(flags["plugins"])
        import_plugins(modules if flags.get(TRUST) else "")
    if missing := [n for n in split_names(modules) if n not in sys.modules]:
        raise make_refusal(f"--run={run}", "plugins", ",".join(missing))
