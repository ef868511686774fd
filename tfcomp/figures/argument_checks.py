"""Checks of what is to be drawn, before anything is drawn."""

import numpy as np
from numpy.typing import ArrayLike


def require(holds: object, rule: str, received: object = "none") -> None:
    """Raises a ValueError that names a rule and what broke it.

    The rule is a sentence, as "maps must have at least one entry".
    """
    if not holds:
        raise ValueError(f"{rule}, received {received}.")


def require_shape(
    name: str, values: ArrayLike, expected: tuple[int, ...]
) -> None:
    """Raises a ValueError if an argument does not have the expected shape."""
    found = np.shape(values)
    require(found == expected, f"{name} must have shape {expected}", found)


def require_one_shape(
    shapes: dict[str, tuple[int, ...]], num_axes: int, rule: str
) -> None:
    """Raises a ValueError if shapes differ or have another number of axes."""
    is_one = len(set(shapes.values())) == 1
    has_axes = all(len(shape) == num_axes for shape in shapes.values())
    require(is_one and has_axes, rule, shapes)
