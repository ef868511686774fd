"""Which axes of the image a factor may be rendered along."""

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace

# In the order of an image's dimensions.
AXES = ("rows", "columns")
_CHOICES = {"find": AXES, "none": (), **{axis: (axis,) for axis in AXES}}


def parse_axes(spec: str, space: FactorSpace) -> dict[str, tuple[str, ...]]:
    """The axes by factor, none for a factor that gets a low-rank matrix.

    The spec is `find`, or a choice for some factors, as `x:columns,y:rows`.

    Raises:
        ConfigError: If the spec is malformed or does not fit the space.
    """
    found = {factor.name: _choose_default(factor) for factor in space}
    for part in spec.split(",") if spec != "find" else ():
        name, _, choice = part.partition(":")
        if name not in found or choice not in _CHOICES:
            factors, choices = ", ".join(found), ", ".join(_CHOICES)
            raise ConfigError(
                "axes",
                f"must be find, or give factors ({factors}) a choice "
                f"({choices}), as in x:columns,y:rows",
                spec,
            )
        found[name] = _CHOICES[choice]
    return found


def _choose_default(factor: Factor) -> tuple[str, ...]:
    return () if factor.categorical or factor.periodic else AXES
