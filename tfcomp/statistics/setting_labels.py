"""Short names for settings, in figures."""

from collections.abc import Mapping, Sequence
from typing import Any


def choose_flags(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The flags that tell the settings apart, in their order.

    A flag that follows from one before it, as the epochs that are varied
    together with the encoding, is left out; so is one that does not vary.
    """
    chosen: list[str] = []
    for name in settings[0]:
        varies = _count(settings, [name]) > 1
        if varies and not any(
            _count(settings, [other, name]) == _count(settings, [other])
            for other in chosen
        ):
            chosen.append(name)
    return chosen


def make_label(setting: Mapping[str, Any], names: Sequence[str]) -> str:
    """The values of some flags, as `bump`, or `encoding bump, depth 2`."""
    texts = [_format(setting[name]) for name in names]
    if len(names) > 1:  # values of several flags may look alike
        pairs = zip(names, texts, strict=True)
        texts = [f"{name} {text}" for name, text in pairs]
    return ", ".join(texts) or "all"


def _format(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _count(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return len({tuple(setting[name] for name in names) for setting in settings})
