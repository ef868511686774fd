"""Labels of settings, and tables in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any


def format_rows(rows: Sequence[Sequence[Any]]) -> str:
    """Formats a table in Markdown; its first row is the head."""
    head, *lines = (f"| {' | '.join(map(str, row))} |\n" for row in rows)
    return "".join([head, f"|{'---|' * len(rows[0])}\n", *lines])


def choose_flags(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the flags that tell the settings apart, in their order.

    Leaves out a flag that does not vary, or that follows from an earlier one,
    as epochs that are varied together with the encoding.
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
    """Formats the values of flags, as `encoding bump, depth 2`."""
    texts = []
    for name in names:
        value = setting[name]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        texts.append(f"{name} {text}")
    return ", ".join(texts) or "all"


def _count(settings: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return len({tuple(setting[name] for name in names) for setting in settings})
