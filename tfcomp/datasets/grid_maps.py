"""Labelled maps and curves: numbers over a grid, and the factors of axes."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.datasets.factors import Factor, FactorSpace, number_rows


@dataclass(frozen=True)
class GridMap:
    """A number per grid point, `[*sizes]`; the mask is True if held out."""

    values: Array
    factors: tuple[Factor, ...]
    mask: Array | None = None
    downward: frozenset[str] = frozenset()  # factors drawn from the top

    def cut(self, plane: "Plane") -> "GridMap":
        """Returns the map of two factors in a plane.

        Args:
            plane: A plane of the same grid.
        """
        mask = self.mask
        if mask is not None:
            mask = mask[plane.index]
        return GridMap(
            values=self.values[plane.index],
            factors=plane.factors,
            mask=mask,
            downward=self.downward,
        )


def arrange_on_grid(
    space: FactorSpace,
    points: Array,
    values: Array,
    empty: Any,
) -> Array:
    """Puts values on the grid.

    Args:
        space: The factors of the grid.
        points: Factor values of distinct combinations, [n, F].
        values: Numbers or booleans, [n]. Of several in one bin, numbers are
            averaged, and booleans true if any is.
        empty: The value where no point is.

    Returns:
        An array [*sizes].
    """
    index = space.to_index(points)
    bins = number_rows(index)
    counts = np.bincount(bins)
    if len(counts) < len(points):
        is_mask = values.dtype == bool
        values = np.bincount(bins, values) / counts
        if is_mask:
            values = values > 0
        _, first = np.unique(bins, return_index=True)
        index = index[first]

    dtype = np.result_type(values, empty)
    grid = np.full(space.shape, empty, dtype)
    grid[tuple(index.T)] = values
    return grid


@dataclass(frozen=True)
class Plane:
    """A part of a grid in which two ordered factors vary."""

    factors: tuple[Factor, Factor]
    index: tuple[int | slice, ...]  # into [*sizes], gives [nx, ny]
    held: str  # the other factors, as `size 2.5, color red`

    @property
    def name(self) -> str:
        """Names of both factors, as `x_y`."""
        return "_".join(factor.name for factor in self.factors)


def list_planes(
    factors: Sequence[Factor],
    index: Array,
    is_ood: Array,
) -> list[Plane]:
    """Returns a plane for every pair of ordered factors that vary.

    All other factors have the levels at which most held-out and training
    points exist, near the middle.

    Args:
        factors: The factors of the grid.
        index: Grid indices of the combinations that exist, int [n, F].
        is_ood: Which of them are held out, [n].
    """
    ordered = [
        column
        for column, factor in enumerate(factors)
        if factor.size > 1 and not factor.categorical
    ]
    planes = []
    for pair in itertools.combinations(ordered, 2):
        levels = _find_fullest(
            factors,
            index,
            is_ood,
            pair,
        )
        plane = _make_plane(factors, pair, levels)
        planes.append(plane)
    return planes


def _make_plane(
    factors: Sequence[Factor],
    pair: tuple[int, int],
    levels: list[int],
) -> Plane:
    """Makes the plane of two factors.

    Args:
        factors: The factors of the grid.
        pair: The columns of the factors that vary.
        levels: The level of each other factor, [F].
    """
    index: list[int | slice] = []
    held = []
    for column, factor in enumerate(factors):
        if column in pair:
            index.append(slice(None))
        else:
            level = levels[column]
            index.append(level)
            held.append(factor.name_level(level))
    first, second = pair
    return Plane(
        factors=(factors[first], factors[second]),
        index=tuple(index),
        held=", ".join(held),
    )


def _find_fullest(
    factors: Sequence[Factor],
    index: Array,
    is_ood: Array,
    pair: tuple[int, int],
) -> list[int]:
    """Finds the levels of all but two factors at which most points exist.

    Only levels that occur together are counted, never all of the grid.
    """
    others = index.copy()
    others[:, pair] = 0
    sizes = np.array([factor.size for factor in factors])
    places = np.ravel_multi_index(others.T, sizes)
    _, first, groups = np.unique(
        places,
        return_index=True,
        return_inverse=True,
    )
    ood_groups = groups[is_ood]
    num_points = np.bincount(groups)
    num_ood = np.bincount(ood_groups, minlength=len(first))
    num_id = num_points - num_ood
    num_both = np.minimum(num_ood, num_id)

    levels = others[first]
    middle = (sizes - 1) // 2
    middle[list(pair)] = 0
    distances = np.abs(levels - middle)
    steps = distances.sum(axis=1)
    keys = [steps, -num_ood, -num_both]
    order = np.lexsort(keys)
    best = order[0]
    return levels[best].tolist()


@dataclass(frozen=True)
class Curve:
    """Grid points along which one ordered factor varies, as for `digit 4`."""

    label: str  # the factor's name if this is the only curve
    factor: Factor
    rows: Array


def list_curves(space: FactorSpace) -> list[Curve]:
    """Returns all curves; none unless exactly one factor is ordered."""
    if len(space.ordered) != 1:
        return []
    (column,) = space.ordered
    factor = space.factors[column]
    categorical = tuple(f for f in space if f.categorical)
    others = FactorSpace(categorical)

    num_points = np.prod(space.shape)
    rows = np.arange(num_points)
    rows = rows.reshape(space.shape)
    lines = np.moveaxis(rows, column, -1)

    curves = []
    for levels in np.ndindex(others.shape):
        label = others.name_point(levels) or factor.name
        curve = Curve(label, factor, rows=lines[levels])
        curves.append(curve)
    return curves


def find_interval(
    curve: Curve,
    is_ood: Array,
) -> tuple[float, float] | None:
    """Finds the first and last held-out value; None if it is in pieces.

    Args:
        curve: The points along a factor.
        is_ood: Which grid points are held out, [n].
    """
    mask = np.asarray(is_ood, bool)
    held_out = np.flatnonzero(mask[curve.rows])
    if len(held_out) < 2:
        return None

    first = held_out[0]
    last = held_out[-1]
    if last - first + 1 != len(held_out):
        return None
    values = curve.factor.values()
    low = float(values[first])
    high = float(values[last])
    return low, high
