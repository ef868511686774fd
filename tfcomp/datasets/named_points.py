"""Combinations of factors, given by name or as an array."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfcomp.config.errors import ConfigError, suggest
from tfcomp.datasets.factors import Factor, FactorSpace


def read_points(
    space: FactorSpace, factors: Any = None, by_name: Mapping[str, Any] = {}
) -> np.ndarray:
    """A table of factor values, float32 [n, F].

    Args:
        factors: Values [n, F] or [F], a mapping from names to values, or a
            table with columns of these names (pandas); None if they are given
            by name.
        by_name: Values by the name of the factor: a number, the name of a
            level, or a list of them. Single values go with all others.

    Raises:
        ConfigError: If a factor is missing or unknown, a level does not exist,
            or the shape is another.
    """
    if hasattr(factors, "to_dict") and hasattr(factors, "columns"):
        factors = {name: factors[name].to_numpy() for name in factors.columns}
    if isinstance(factors, Mapping):
        factors, by_name = None, {**factors, **by_name}
    if factors is None:
        return _join(space, by_name)
    if by_name:
        rule = "must be given once, as an array or by name"
        raise ConfigError("factors", rule, sorted(by_name))
    table = np.atleast_2d(np.asarray(factors, np.float32))
    if table.ndim != 2 or table.shape[1] != len(space):
        rule = f"must be [n, {len(space)}] ({', '.join(space.names)})"
        raise ConfigError("factors", rule, list(np.shape(factors)))
    return table


def _join(space: FactorSpace, by_name: Mapping[str, Any]) -> np.ndarray:
    known = ", ".join(space.names)
    for name in by_name:
        if name not in space.names:
            rule = f"must be among {known}{suggest(name, space.names)}"
            raise ConfigError("factors", rule, name)
    missing = [name for name in space.names if name not in by_name]
    if missing:
        rule = f"must all be given: {known}; missing {', '.join(missing)}"
        raise ConfigError("factors", rule, sorted(by_name))
    columns = [_to_values(factor, by_name[factor.name]) for factor in space]
    try:
        joined = np.broadcast_arrays(*columns)
    except ValueError:
        rule = "must have one length, or be single values"
        raise ConfigError("factors", rule, [*map(len, columns)]) from None
    return np.stack(joined, axis=1).astype(np.float32)


def _to_values(factor: Factor, given: Any) -> np.ndarray:
    """Values of one factor, [n]; the names of levels become their values."""
    items = np.atleast_1d(np.asarray(given))
    if items.dtype.kind not in "USO":
        return items.astype(np.float32)
    values = factor.values()
    found = []
    for item in items.tolist():
        if item in factor.names:
            item = values[factor.names.index(item)]
        try:
            found.append(float(item))
        except (TypeError, ValueError):
            rule = f"must be among {', '.join(factor.names) or 'numbers'}"
            raise ConfigError(factor.name, rule, item) from None
    return np.array(found, np.float32)
