"""Tables from a name to a builder, so that flags can choose by name."""

import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

from tfcomp.config.errors import ConfigError


class Entry(NamedTuple):
    """A registered builder and its rules for configurations."""

    target: Callable | str
    check: Callable | None
    cost: Callable | None

    def load(self) -> Callable:
        """Returns the builder, imported if it is a path."""
        if isinstance(self.target, str):
            return pkgutil.resolve_name(self.target)
        return self.target


class Registry:
    """A table of builders; errors name the flag that chooses among them.

    A builder may be the path of one (`package.module:function`), which is
    imported on use: listing models imports no TensorFlow.
    """

    def __init__(self, flag: str) -> None:
        self.flag = flag
        self._entries: dict[str, Entry] = {}
        self.clear = self._entries.clear  # removes all entries

    def register(
        self,
        name: str,
        target: Callable | str | None = None,
        check: Callable | None = None,
        cost: Callable | None = None,
    ) -> Any:
        """Adds a builder; without `target` it is a decorator.

        Args:
            name: The value of the flag.
            target: The builder, or its path `package.module:function`.
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


def locate(target: Callable | str) -> str:
    """Returns the path of a builder, as `package.module:function`."""
    if isinstance(target, str):
        return target
    # A `functools.partial` has no path.
    name = getattr(target, "__qualname__", repr(target))
    return f"{target.__module__}:{name}"


# Callbacks of users; public as `tfcomp.register_callback`.
CALLBACKS = Registry("callback")
register_callback = CALLBACKS.register
unregister_all = CALLBACKS.clear
