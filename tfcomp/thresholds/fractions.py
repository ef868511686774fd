"""Regions that grow with the grid: bounds as fractions of its side.

`corner:0.5` holds out the corner above the middle, whatever the grid size:
fraction f is the position f (N - 1), so that 0 is the first pixel and 1 the
last, and a region that is symmetric in fractions is symmetric on the grid.
"""

from __future__ import annotations

import re

from tfcomp.config.errors import ConfigError

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Digits after the point of a scaled bound, in pixels.
_DIGITS = 6


def scale_region(spec: str, grid_size: int) -> str:
    """The region in pixels of one grid, as `--region` takes it.

    Args:
        spec: A region whose numbers are fractions, such as
            `square:0.25-0.75` or `box:x:0-0.5,y:0.5-1`.
        grid_size: Pixels along a side.

    Raises:
        ConfigError: If a number is no fraction.
    """

    def scale(match: re.Match) -> str:
        fraction = float(match[0])
        if fraction > 1:
            rule = "must have bounds that are fractions of the side, 0 to 1"
            raise ConfigError("regions", rule, spec)
        bound = round(fraction * (grid_size - 1), _DIGITS)
        return f"{bound:.{_DIGITS}f}".rstrip("0").rstrip(".")

    kind, colon, bounds = spec.partition(":")
    return kind + colon + _NUMBER.sub(scale, bounds)
