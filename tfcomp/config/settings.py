"""Dataclass fields that declare a flag, its help, and a rule for its value."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from tfcomp.config.errors import ConfigError

# Names of types in errors.
NOUNS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a string",
}
# Control characters and line ends, which would break the lines of a flagfile or
# move a terminal's cursor; surrogates, which no file in UTF-8 can hold.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
NO_CONTROLS = "text without control characters"
# The largest value of a setting that declares no bound of its own.
LARGEST = {int: 10**7, float: 1e30}


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: Sequence[str] | None = None,
) -> Any:
    """Declares a dataclass field that is also a flag.

    Args:
        default: The default value, which also gives the flag its type.
        help: One sentence for `--help`.
        minimum: The least value.
        maximum: The largest value; by default a generous one.
        above: A number that the value must exceed.
        choices: All values that are allowed.
    """
    if maximum is None:
        maximum = LARGEST.get(type(default))
    metadata = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "choices": choices,
    }
    return dataclasses.field(default=default, metadata=metadata)


def non_negative(default: float, help: str, **rules: Any) -> Any:
    """Declares a `setting` whose value is a number of at least 0."""
    return setting(default, help, minimum=type(default)(0), **rules)


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
        """Makes the settings from flags, and `others` that are no flags."""
        names = [field.name for field in cls.list_settings()]
        chosen = {name: flags[name] for name in names if name in flags}
        return cls(**chosen, **others)

    def to_flags(self) -> dict[str, Any]:
        """Returns the flags by name; the inverse of `from_flags`."""
        return {f.name: getattr(self, f.name) for f in self.list_settings()}


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
    """Returns the first rule that a value breaks, or an empty text."""
    expected = type(field.default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    has_type = is_number if expected is float else type(value) is expected
    if not has_type:
        return NOUNS[expected.__name__]
    # Not `math.isfinite`, which raises for an integer of 400 digits.
    if expected is float and not -math.inf < value < math.inf:
        return "a finite number"
    if expected is str and value != value.strip():
        return "one line without spaces around it"
    if expected is str and CONTROLS.search(value):
        return NO_CONTROLS

    rules = field.metadata
    if rules["minimum"] is not None and value < rules["minimum"]:
        return f"at least {rules['minimum']}"
    if rules["maximum"] is not None and value > rules["maximum"]:
        return f"at most {rules['maximum']}"
    if rules["above"] is not None and value <= rules["above"]:
        return f"greater than {rules['above']}"
    if rules["choices"] is not None and value not in rules["choices"]:
        return f"one of: {', '.join(rules['choices'])}"
    return ""
