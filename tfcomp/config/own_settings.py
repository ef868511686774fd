"""Settings that plugins declare: flags that are part of a run's identity."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from tfcomp.config.settings import check_value, find_broken_rule, setting

# Columns that tables of runs and sweeps have beside those of settings.
COLUMNS = (
    "run name study folder setting round tfcomp tensorflow keras numpy devices "
    "cores threads onednn measured_with trial status reason axis place value "
    "quantity epoch stage score mean sd low high n"
).split()
# Name to declaration, and to the plugin that was being imported.
_DECLARED: dict[str, tuple[dataclasses.Field, str]] = {}
IMPORTING = [""]  # plugins, the innermost last


class OwnSettings(dict[str, Any]):
    """Values of declared settings by name; do not change them."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def declare_setting(name: str, default: Any, help: str, **rules: Any) -> None:
    """Declares a setting of a plugin, which a sweep can vary.

    `declare_setting("num_petals", 5, "Petals of a flower.", minimum=1)` at the
    top of a plugin makes `--num_petals`. A dataset or model finds its value in
    `config.own["num_petals"]`.

    Args:
        name: Its flag, and its key in `config.own`.
        default: Its default value, which also gives the flag its type.
        help: One sentence for `--help`.
        **rules: `minimum`, `maximum`, `above`, `choices`.

    Raises:
        ValueError: The name cannot be a flag, is a column of tables or is
            declared differently already, or the default breaks the rules.
    """
    field = setting(default, help, **rules)
    field.name = name
    rule = find_broken_rule(field, default)
    if not name.isidentifier() or name in COLUMNS:
        rule = "named as a Python variable, and as no column of tables"
    if rule:
        raise ValueError(f"the setting {name} must be {rule}")

    # A plugin that is imported twice declares twice.
    known, plugin = _DECLARED.get(name, (field, IMPORTING[-1]))
    if (known.default, known.metadata) != (field.default, field.metadata):
        raise ValueError(f"the setting {name} is declared already")
    _DECLARED[name] = (field, plugin)


def list_declared(plugins: Collection[str]) -> list[dataclasses.Field]:
    """Returns the settings of these plugins, and of code outside of plugins."""
    fields = []
    for field, plugin in _DECLARED.values():
        if not plugin or plugin in plugins:
            fields.append(field)
    return fields


def read_own(flags: Mapping[str, Any], plugins: Collection[str]) -> OwnSettings:
    """Returns the settings of plugins, as `Settings.from_flags` does."""
    values = OwnSettings()
    for field in list_declared(plugins):
        value = flags.get(field.name, field.default)
        check_value(field, value)
        values[field.name] = value
    return values
