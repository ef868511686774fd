"""Tables from a name to a builder, so that flags can choose by name.

An entry is a callable or the dotted path of one (`package.module:function`),
which is imported when it is asked for: listing models imports no TensorFlow.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from tfcomp.config.errors import ConfigError


@dataclass(frozen=True)
class Entry:
    """One registered builder and the rules it sets on a configuration."""

    target: Callable | str
    check: Callable | None = None
    cost: Callable | None = None

    def load(self) -> Callable:
        """The builder itself, imported if it was given as a path."""
        if isinstance(self.target, str):
            return pkgutil.resolve_name(self.target)
        return self.target


class Registry:
    """A table of builders that are chosen by a flag, which errors name."""

    def __init__(self, flag: str) -> None:
        self.flag = flag
        self._entries: dict[str, Entry] = {}

    def register(
        self,
        name: str,
        target: Callable | str | None = None,
        check: Callable | None = None,
        cost: Callable | None = None,
    ) -> Callable:
        """Adds a builder; without `target` it is a decorator.

        Args:
            name: The name to choose it by.
            target: The builder, or its path `package.module:function`.
            check: Of a model, called as `check(config, dataset)` before
                anything is built; raises `ConfigError` where the builder
                cannot work.
            cost: Of a model, called as `cost(config)`; returns the
                multiplications of its widest layer for an image.

        Raises:
            ValueError: If the name is taken by another builder.
        """
        if target is None:
            return lambda function: self.register(name, function, check, cost)
        known = self._entries.get(name)
        # A plugin that is imported again registers the same thing again.
        if known is not None and locate(known.target) != locate(target):
            raise ValueError(f"the {self.flag} {name!r} is registered already")
        self._entries[name] = Entry(target, check, cost)
        return target

    def clear(self) -> None:
        """Takes back all that is registered."""
        self._entries.clear()

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self._entries)

    def get(self, name: str) -> Entry:
        """The entry of `name`.

        Raises:
            ConfigError: If there is none; lists what exists.
        """
        if name not in self._entries:
            known = ", ".join(self.names())
            raise ConfigError(self.flag, f"must be one of: {known}", name)
        return self._entries[name]


def locate(target: Callable | str) -> str:
    """Where a builder is from, as `package.module:function`."""
    if isinstance(target, str):
        return target
    # A `functools.partial` or another callable object has no path.
    name = getattr(target, "__qualname__", repr(target))
    return f"{target.__module__}:{name}"


# Of the callbacks that users register; `tfcomp` offers `register_callback`.
CALLBACKS = Registry("callback")
register_callback = CALLBACKS.register
unregister_all = CALLBACKS.clear
