"""Curves: the grid of a space with one ordered factor, cut into lines.

A rotated digit has one curve, the angle; several digits have one each. A
space with two ordered factors has none, and is drawn as a map instead.
"""

from dataclasses import dataclass

import numpy as np

from tfcomp.datasets.factors import Factor, FactorSpace


@dataclass(frozen=True)
class Curve:
    """One line through the grid, along which one ordered factor varies.

    The rows are its grid points, in the order of the factor. The label says
    which one it is, as `digit 4`; it is the factor's name if it is the only
    one.
    """

    label: str
    factor: Factor
    rows: np.ndarray


def list_curves(space: FactorSpace) -> list[Curve]:
    """All curves; none if the space has no single ordered factor."""
    if len(space.ordered) != 1:
        return []
    column = space.ordered[0]
    factor = space.factors[column]
    rows = np.arange(np.prod(space.shape)).reshape(space.shape)
    lines = np.moveaxis(rows, column, -1).reshape(-1, factor.size)
    grid = space.grid()
    curves = []
    for line in lines:
        names = [
            f"{f.name} {f.describe(grid[line[0], i])}"
            for i, f in enumerate(space)
            if i != column
        ]
        curves.append(Curve(", ".join(names) or factor.name, factor, line))
    return curves


def find_interval(curve: Curve, is_ood: np.ndarray) -> tuple | None:
    """First and last held-out value of a curve, to be shaded.

    None if nothing is held out, or not in one piece without a wrap.
    """
    held = np.flatnonzero(np.asarray(is_ood, bool)[curve.rows])
    if len(held) < 2 or held[-1] - held[0] + 1 != len(held):
        return None
    values = curve.factor.values()
    return float(values[held[0]]), float(values[held[-1]])
