"""Plugins: modules of users that register their own parts, and registries."""

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tfcomp.config.errors import ConfigError, RunError, describe_plugin_error
from tfcomp.config.process import quiet_startup
from tfcomp.config.settings import IMPORTING, split_names

# Plugins that come with tfcomp.
CONTRIB = "tfcomp.contrib"
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


def admit_plugins(run: Path, modules: str, trusted: str = "") -> None:
    """Imports the plugins that the user names, and no others of a run.

    Args:
        run: A run folder, which may come from a stranger.
        modules: The plugins that its flags name, separated by commas.
        trusted: The plugins that the user names, separated by commas.

    Raises:
        RunError: If a plugin of the run is not imported by then.
    """
    import_plugins(trusted)
    missing = [name for name in split_names(modules) if name not in sys.modules]
    if missing:
        names = ",".join(missing)
        raise RunError(
            f"--run={run} was trained with --plugins={names}: if you trust "
            "this code, say so on the command line, or import it first"
        )


def import_modules(package: str, nested: bool = False) -> None:
    """Imports the modules of a package, which register their parts.

    Args:
        package: Its name, as `tfcomp.contrib`.
        nested: Imports the modules of packages inside of it, too.
    """
    path = importlib.import_module(package).__path__
    list_modules = pkgutil.iter_modules
    if nested:
        list_modules = pkgutil.walk_packages
    for module in list_modules(path, f"{package}."):
        importlib.import_module(module.name)


@functools.cache
def import_contrib() -> None:
    """Imports the plugins that come with tfcomp, once."""
    import_modules(CONTRIB)


class Entry(NamedTuple):
    """A registered part and its rules for configurations."""

    target: Any
    check: Callable | None = None
    cost: Callable | None = None
    constants: Callable | None = None

    def load(self) -> Any:
        """Returns the part."""
        return self.target


class Registry:
    """A table of parts; errors name the flag that chooses among them.

    Parts of `tfcomp.contrib` are imported when a name is unknown without them,
    or when names are listed.
    """

    by_flag: ClassVar[dict[str, "Registry"]] = {}  # for help

    def __init__(self, flag: str) -> None:
        self.flag = flag
        self.by_flag[flag] = self
        self._entries: dict[str, Entry] = {}
        self.clear = self._entries.clear  # removes all entries

    def register(
        self,
        name: str,
        target: Any = None,
        check: Callable | None = None,
        cost: Callable | None = None,
        constants: Callable | None = None,
    ) -> Any:
        """Adds a part; without `target` it is a decorator.

        Args:
            name: The value of the flag.
            target: The part, in most registries a function that builds it.
            check: `check(config, dataset)` of a model raises `ConfigError` if
                the builder cannot work; called before anything is built.
            cost: `cost(config)` of a model returns the multiplications of its
                widest layer for an image.
            constants: `constants(dataset)` of a model returns the list of
                numbers that its network takes from training images and does
                not learn, as a background. Only runs that agree in them share
                a traced network.

        Raises:
            ValueError: The name is taken by another part.
        """
        if target is None:
            return lambda function: self.register(
                name, function, check, cost, constants
            )
        earlier = self._entries.get(name)
        # A plugin that is imported twice registers twice.
        if earlier is not None and locate(earlier.target) != locate(target):
            raise ValueError(f"the {self.flag} {name!r} is registered already")
        self._entries[name] = Entry(target, check, cost, constants)
        return target

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        import_contrib()
        return sorted(self._entries)

    def get(self, name: str) -> Entry:
        """Returns the entry of `name`; a ConfigError lists the names."""
        if name not in self._entries:
            import_contrib()
        if name not in self._entries:
            names = ", ".join(self.names())
            raise ConfigError(self.flag, f"must be one of: {names}", name)
        return self._entries[name]


def locate(target: Any) -> str:
    """Returns the path of a part, as `package.module:function`."""
    # A `functools.partial` has no path.
    name = getattr(target, "__qualname__", repr(target))
    return f"{target.__module__}:{name}"


# Callbacks of users; public as `tfcomp.register_callback`.
CALLBACKS = Registry("callback")
register_callback = CALLBACKS.register
unregister_all = CALLBACKS.clear
