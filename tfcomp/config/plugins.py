"""Plugins: modules of users that register their own parts, and registries."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tfcomp.config.errors import ConfigError, RunError, describe_plugin_error
from tfcomp.config.own_settings import IMPORTING
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import split_names

# Flag of the commands that load runs.
PLUGIN_FLAG = {"plugins": ("", "Modules with parts of your own; as in train.")}


def import_plugins(modules: str) -> None:
    """Imports modules, which register their own parts.

    Args:
        modules: Names of modules, separated by commas.

    Raises:
        ConfigError: There is no module of this name.
        RunError: A module raises an error.
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


def admit_plugins(run: Path, modules: str, given: str = "") -> None:
    """Imports the plugins that the user names, and no others of a run.

    Args:
        run: A run folder, which may come from a stranger.
        modules: The plugins that its flags name, separated by commas.
        given: The plugins that the user names, separated by commas.

    Raises:
        RunError: If a plugin of the run is not imported by then.
    """
    import_plugins(given)
    missing = [name for name in split_names(modules) if name not in sys.modules]
    if missing:
        names = ",".join(missing)
        raise RunError(
            f"--run={run} was trained with --plugins={names}: if you trust "
            "this code, say so on the command line, or import it first"
        )


class Entry(NamedTuple):
    """A registered builder and its rules for configurations."""

    target: Callable
    check: Callable | None
    cost: Callable | None

    def load(self) -> Callable:
        """Returns the builder."""
        return self.target


class Registry:
    """A table of builders; errors name the flag that chooses among them."""

    def __init__(self, flag: str) -> None:
        self.flag = flag
        self._entries: dict[str, Entry] = {}
        self.clear = self._entries.clear  # removes all entries

    def register(
        self,
        name: str,
        target: Callable | None = None,
        check: Callable | None = None,
        cost: Callable | None = None,
    ) -> Any:
        """Adds a builder; without `target` it is a decorator.

        Args:
            name: The value of the flag.
            target: The builder.
            check: `check(config, dataset)` of a model raises `ConfigError` if
                the builder cannot work; called before anything is built.
            cost: `cost(config)` of a model returns the multiplications of its
                widest layer for an image.

        Raises:
            ValueError: The name is taken by another builder.
        """
        if target is None:
            return lambda function: self.register(name, function, check, cost)
        known = self._entries.get(name)
        # A plugin that is imported twice registers twice.
        if known is not None and locate(known.target) != locate(target):
            raise ValueError(f"the {self.flag} {name!r} is registered already")
        self._entries[name] = Entry(target, check, cost)
        return target

    def names(self) -> list[str]:
        """Returns all registered names, sorted."""
        return sorted(self._entries)

    def get(self, name: str) -> Entry:
        """Returns the entry of `name`; a ConfigError lists the names."""
        if name not in self._entries:
            known = ", ".join(self.names())
            raise ConfigError(self.flag, f"must be one of: {known}", name)
        return self._entries[name]


def locate(target: Callable) -> str:
    """Returns the path of a builder, as `package.module:function`."""
    # A `functools.partial` has no path.
    name = getattr(target, "__qualname__", repr(target))
    return f"{target.__module__}:{name}"


# Callbacks of users; public as `tfcomp.register_callback`.
CALLBACKS = Registry("callback")
register_callback = CALLBACKS.register
unregister_all = CALLBACKS.clear
