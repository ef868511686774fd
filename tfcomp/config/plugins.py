"""Imports plugins, registers their parts, refuses flags that files may not set.

Plugins are modules of users that register their own parts: they run code. A
flagfile or a finished run may come from another person. A flag that runs code,
connects to another machine or removes a run must stand on the command line once
more, or --trust_flagfile must.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
TRUST = "trust_flagfile"
TRUST_FLAG = {
    TRUST: (
        False,
        "Do what flagfiles and runs ask for, even if it imports code, "
        "connects to other machines or removes a run.",
    )
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
        cure = "" if flags is not None else f"import {', '.join(missing)} first"
        raise make_refusal(f"--run={run}", "plugins", ",".join(missing), cure)


def check_untrusted(arguments: Sequence[str]) -> None:
    """Refuses guarded flags that only a file sets, in expanded arguments."""
    foreign = [a for a in arguments if isinstance(a, UntrustedFlag)]
    others = (a for a in arguments if not isinstance(a, UntrustedFlag))
    given = set(map(_split_flag, others))
    for name, value in map(_split_flag, foreign):
        if name.removeprefix("no") == TRUST:
            raise RunError(f"a flagfile cannot say --{name}")
        is_on = name in GUARDED and value not in ("", "false", "f", "0")
        if is_on and not given & {(name, value), (TRUST, "true")}:
            raise make_refusal("a flagfile", name, value)


def make_refusal(place: str, name: str, value: str, cure: str = "") -> RunError:
    """Returns the error for a flag that a file sets and the user does not."""
    cure = cure or f"add --{name}={value} or --trust_flagfile"
    why = f"which {GUARDED[name]}: if you trust it, {cure}"
    return RunError(f"{place} has --{name}={value}, {why}")


def _split_flag(argument: str) -> tuple[str, str]:
    name, equals, value = argument.lstrip("-").partition("=")
    value = value.strip() if equals else "true"
    if name in (TRUST, "overwrite"):
        value = {"1": "true", "t": "true"}.get(value.lower(), value.lower())
    return name, value


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
