"""Settings: fields that declare a flag, its help, and a rule for its value.

Dataclasses of tfcomp have them as fields, plugins declare them by
`declare_setting`. Both identify a run, but for the flags that only say where
and how it is stored (`RunConfig.identity`).
"""

import dataclasses
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from tfcomp.config.errors import ConfigError

# Names of types in errors, as in "must be an integer".
NOUNS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a string",
}
# Control characters and line ends, which would break the lines of a flagfile or
# move a terminal's cursor; what turns the direction of writing around; and
# surrogates, which no file in UTF-8 can hold.
CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
NO_CONTROLS = "text without control characters"
# The largest value of a setting that declares no bound of its own.
LARGEST = {int: 10**7, float: 1e30}
# Columns of tables of runs and sweeps that are no settings: a plugin's setting
# of this name would overwrite them.
COLUMNS = (
    "run name study folder setting round tfcomp tensorflow keras numpy devices "
    "cores threads onednn measured_with trial status reason axis place value "
    "quantity epoch stage score mean sd low high n"
).split()
# From the name of a setting to its declaration, and to the plugin that was
# being imported when it was declared ("" for code outside of plugins).
_DECLARED: dict[str, tuple[dataclasses.Field, str]] = {}
# Plugins that are being imported, the innermost last; "" stands for none.
IMPORTING = [""]


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: Sequence[str] | None = None,
    used_by: str = "",
) -> Any:
    """Declares a dataclass field that is also a flag.

    Args:
        default: The default value, which also gives the flag its type.
        help: One sentence for `--help`.
        minimum: The least value.
        maximum: The largest value; by default the one in `LARGEST`.
        above: A number that the value must exceed.
        choices: All values that are allowed.
        used_by: Names of the models, codes and datasets that read it, separated
            by spaces; empty if all do.
    """
    if maximum is None:
        maximum = LARGEST.get(type(default))
    metadata = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "choices": choices,
        "used_by": used_by.split(),
    }
    return dataclasses.field(default=default, metadata=metadata)


def non_negative(default: float, help: str, **rules: Any) -> Any:
    """Declares a `setting` whose value is a number of at least 0.

    Args:
        default: The default value.
        help: One sentence for `--help`.
        **rules: More arguments of `setting`.
    """
    kind = type(default)
    return setting(
        default,
        help,
        minimum=kind(0),
        **rules,
    )


class Settings:
    """Base of dataclasses whose fields are made by `setting`."""

    def __post_init__(self) -> None:
        for field in self.list_settings():
            check_value(field, getattr(self, field.name))

    @classmethod
    def list_settings(cls) -> list[dataclasses.Field]:
        """Returns the fields that are flags."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return [field for field in fields if "help" in field.metadata]

    @classmethod
    def from_flags(cls, flags: Mapping[str, Any], **others: Any) -> Self:
        """Makes the settings from flags.

        Args:
            flags: Values by name, perhaps of other settings, too.
            **others: Fields that are no flags.
        """
        values = dict(others)
        for field in cls.list_settings():
            if field.name in flags:
                values[field.name] = flags[field.name]
        return cls(**values)

    def to_flags(self) -> dict[str, Any]:
        """Returns the flags by name; the inverse of `from_flags`."""
        flags = {}
        for field in self.list_settings():
            flags[field.name] = getattr(self, field.name)
        return flags


def check_value(field: dataclasses.Field, value: Any) -> None:
    """Checks the value of a setting.

    Args:
        field: The setting, as `setting` declares it.
        value: Its value.

    Raises:
        ConfigError: If the value breaks a rule of its setting.
    """
    rule = find_broken_rule(field, value)
    if rule:
        raise ConfigError(field.name, f"must be {rule}", value)


def find_broken_rule(field: dataclasses.Field, value: Any) -> str:
    """Finds the first rule that a value breaks.

    Args:
        field: The setting, as `setting` declares it.
        value: Its value.

    Returns:
        What the value must be, or an empty text.
    """
    expected = type(field.default)
    has_type = type(value) is expected
    # An integer is a number, too, but True and False, which Python counts as
    # integers, are not.
    if expected is float and type(value) is not bool:
        has_type = isinstance(value, int | float)
    if not has_type:
        return NOUNS[expected.__name__]

    # Not `math.isfinite`, which raises for an integer of 400 digits.
    if expected is float and not -math.inf < value < math.inf:
        return "a finite number"
    if expected is str:
        if value != value.strip():
            return "one line without spaces around it"
        if CONTROLS.search(value):
            return NO_CONTROLS

    minimum = field.metadata["minimum"]
    maximum = field.metadata["maximum"]
    above = field.metadata["above"]
    choices = field.metadata["choices"]
    if minimum is not None and value < minimum:
        return f"at least {minimum}"
    if maximum is not None and value > maximum:
        return f"at most {maximum}"
    if above is not None and value <= above:
        return f"greater than {above}"
    if choices is not None and value not in choices:
        return f"one of: {', '.join(choices)}"
    return ""


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
        ValueError: If the name cannot be a flag, is a column of tables or is
            declared differently already, or if the default breaks the rules.
    """
    field = setting(default, help, **rules)
    field.name = name
    rule = find_broken_rule(field, default)
    if not name.isidentifier() or name in COLUMNS:
        rule = "named as a Python variable, and as no column of tables"
    if rule:
        raise ValueError(f"the setting {name} must be {rule}")

    # A plugin that is imported twice declares twice: the first plugin stays.
    earlier, plugin = _DECLARED.get(name, (field, IMPORTING[-1]))
    is_same = earlier.default == field.default
    is_same &= earlier.metadata == field.metadata
    if not is_same:
        raise ValueError(f"the setting {name} is declared already")
    _DECLARED[name] = (field, plugin)


def list_declared(plugins: Collection[str]) -> list[dataclasses.Field]:
    """Returns the settings of these plugins, and of code outside of plugins."""
    fields = []
    for field, plugin in _DECLARED.values():
        if not plugin or plugin in plugins:
            fields.append(field)
    return fields


def read_own(
    flags: Mapping[str, Any], plugins: Collection[str]
) -> dict[str, Any]:
    """Reads the settings of plugins, as `Settings.from_flags` does.

    Args:
        flags: Values by name; others are ignored.
        plugins: Names of modules.

    Raises:
        ConfigError: If a value breaks a rule of its setting.
    """
    values = {}
    for field in list_declared(plugins):
        value = flags.get(field.name, field.default)
        check_value(field, value)
        values[field.name] = value
    return values


def split_names(text: str) -> list[str]:
    """Splits names or patterns at commas, as in `logs/donut*,logs/depth`."""
    names = [name.strip() for name in text.split(",")]
    return [name for name in names if name]


def split_paths(text: str) -> list[str]:
    """Splits paths or patterns at commas, unless the text is one path."""
    if os.path.lexists(os.path.expanduser(text)):
        return [text]
    return split_names(text)
