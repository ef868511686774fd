"""Results at points of which some are known from elsewhere."""

from collections.abc import Callable, Mapping

import numpy as np


def compute_rest(
    known: Mapping[str, np.ndarray],
    known_points: np.ndarray,
    points: np.ndarray,
    compute: Callable[[np.ndarray], Mapping[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """What a function gives at points, computed where it is not known.

    Args:
        known: Its values by name, [m, ...], at `known_points` [m, F].
        points: Where they are wanted, [n, F].
        compute: The function, of some of these points.
    """
    places = {row.tobytes(): i for i, row in enumerate(known_points)}
    rows = np.array([places.get(row.tobytes(), -1) for row in points])
    missing = rows < 0
    if missing.all():
        return dict(compute(points))
    found = {name: values[rows] for name, values in known.items()}
    if missing.any():
        for name, values in compute(points[missing]).items():
            found[name][missing] = values
    return found
