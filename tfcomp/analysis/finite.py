"""Numbers as they go into JSON, which has no NaN: null where there is none."""

import numpy as np


def finite_or_none(value: float | None) -> float | None:
    """A plain float, or None for a number that does not exist."""
    if value is None or not np.isfinite(value):
        return None
    return float(value)


def mean_or_none(values: np.ndarray) -> float | None:
    """The mean; None without values or if one of them is not finite."""
    return finite_or_none(np.mean(values)) if np.size(values) else None
