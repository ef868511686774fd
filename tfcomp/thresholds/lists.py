"""Flags whose value is a list."""

from __future__ import annotations

import csv

from tfcomp.config.errors import ConfigError

# The region of a kind where the user names none: figure 4 holds out a corner
# of what is composed of stripes; the bumps alone that it compares them with
# are drawn everywhere.
OWN_REGIONS = {"bumps": "none", "stripes_and_bumps": "corner:0.5"}


def split_list(flag: str, text: str) -> list[str]:
    """Different values, separated by commas and quoted as in CSV.

    Raises:
        ConfigError: If there is none, one is empty, or two are equal.
    """
    rule = "must be different values, separated by commas"
    try:
        rows = list(csv.reader([text], strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise ConfigError(flag, f"{rule} ({error})", text) from error
    values = [cell.strip() for cell in (rows[0] if rows else [])]
    if not values or not all(values) or len(set(values)) < len(values):
        raise ConfigError(flag, rule, text)
    return values


def parse_sizes(text: str) -> list[int]:
    """Grid sizes.

    Raises:
        ConfigError: If one is no positive integer, or repeated.
    """
    parts = split_list("grid_sizes", text)
    if not all(part.isdecimal() for part in parts):
        rule = "must be positive integers, separated by commas"
        raise ConfigError("grid_sizes", rule, text)
    return [int(part) for part in parts]


def parse_variants(kinds: str, regions: str) -> list[tuple[str, str]]:
    """Pairs of a kind and a region with bounds in fractions of the side.

    Raises:
        ConfigError: For an unknown kind, or an ill-formed list.
    """
    names = split_list("kinds", kinds)
    for name in names:
        if name not in OWN_REGIONS:
            rule = f"must be among: {', '.join(OWN_REGIONS)}"
            raise ConfigError("kinds", rule, name)
    if not regions:
        return [(name, OWN_REGIONS[name]) for name in names]
    chosen = split_list("regions", regions)
    return [(name, region) for name in names for region in chosen]
