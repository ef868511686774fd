"""Labelled maps and curves: numbers over a grid, and the factors of axes."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfcomp.datasets.factors import Factor, FactorSpace, number_rows


@dataclass(frozen=True)
class GridMap:
    """A number per grid point, `[*sizes]`; the mask is True if held out."""

    values: np.ndarray
    factors: tuple[Factor, ...]
    mask: np.ndarray | None = None
    downward: frozenset[str] = frozenset()  # factors drawn from the top

    def cut(self, plane: "Plane") -> "GridMap":
        """Returns the map of two factors in a plane."""
        mask = None if self.mask is None else self.mask[plane.index]
        values = self.values[plane.index]
        return GridMap(values, plane.factors, mask, self.downward)

    def average(self, axis: int) -> "GridMap":
        """Averages over all other factors; a value with a held-out point is."""
        others = tuple(a for a in range(len(self.factors)) if a != axis)
        mask = None if self.mask is None else np.any(self.mask, axis=others)
        means = self.values.mean(axis=others)
        return GridMap(means, (self.factors[axis],), mask)


def spread(
    space: FactorSpace, points: np.ndarray, values: np.ndarray, empty: Any
) -> np.ndarray:
    """Returns values on the grid, [*sizes]; means of points of one bin."""
    grid = np.full(space.shape, empty, np.result_type(values, empty))
    index = space.to_index(points)
    bins = number_rows(index)
    counts = np.bincount(bins)
    if len(counts) < len(points):
        means = np.bincount(bins, values) / counts
        index = index[np.unique(bins, return_index=True)[1]]
        values = means > 0 if values.dtype == bool else means
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
    factors: Sequence[Factor], index: np.ndarray, is_ood: np.ndarray
) -> list[Plane]:
    """Returns a plane for every pair of ordered factors that vary.

    Args:
        factors: The factors of the grid, whose size must be an int64.
        index: Grid indices of the combinations that exist, int [n, F].
        is_ood: Which of them are held out, [n].
    """
    ordered = [
        i for i, f in enumerate(factors) if f.size > 1 and not f.categorical
    ]
    pairs = itertools.combinations(ordered, 2)
    held_out = _list_distinct(factors, index[is_ood])
    known = _list_distinct(factors, index[~is_ood])
    return [_choose_plane(factors, held_out, known, pair) for pair in pairs]


def _list_distinct(factors: Sequence[Factor], index: np.ndarray) -> np.ndarray:
    """Returns distinct rows of grid indices, in the order of the grid."""
    sizes = [factor.size for factor in factors]
    places = np.unique(np.ravel_multi_index(index.T, sizes))
    return np.stack(np.unravel_index(places, sizes), axis=1)


def _choose_plane(
    factors: Sequence[Factor],
    held_out: np.ndarray,
    known: np.ndarray,
    pair: tuple[int, int],
) -> Plane:
    """Fixes the others at most held-out and known points, near the middle."""
    others = [i for i in range(len(factors)) if i not in pair]
    place: dict[int, int] = {}
    if others:
        best = _find_fullest(factors, held_out, known, others)
        place = dict(zip(others, best, strict=True))
    index = tuple(place.get(i, slice(None)) for i in range(len(factors)))
    held = ", ".join(factors[i].name_level(at) for i, at in place.items())
    return Plane((factors[pair[0]], factors[pair[1]]), index, held)


def _find_fullest(
    factors: Sequence[Factor],
    held_out: np.ndarray,
    known: np.ndarray,
    columns: list[int],
) -> list[int]:
    """Returns the values of some factors at which most points exist.

    Only values that occur together are counted, never all of the grid.
    """
    sizes = [factors[i].size for i in columns]
    points = np.concatenate([held_out, known])[:, columns]
    flat = np.ravel_multi_index(points.T, sizes)
    places, number = np.unique(flat, return_inverse=True)
    num_ood = np.bincount(number[: len(held_out)], minlength=len(places))
    num_id = np.bincount(number[len(held_out) :], minlength=len(places))

    values = np.stack(np.unravel_index(places, sizes), axis=1)
    middle = [(size - 1) // 2 for size in sizes]
    steps = np.abs(values - middle).sum(axis=1)
    order = np.lexsort([steps, -num_ood, -np.minimum(num_ood, num_id)])
    return values[order[0]].tolist()


@dataclass(frozen=True)
class Curve:
    """Grid points along which one ordered factor varies, as for `digit 4`."""

    label: str  # the factor's name if this is the only curve
    factor: Factor
    rows: np.ndarray


def list_curves(space: FactorSpace) -> list[Curve]:
    """Returns all curves; none unless exactly one factor is ordered."""
    if len(space.ordered) != 1:
        return []
    column = space.ordered[0]
    factor = space.factors[column]
    others = FactorSpace(tuple(f for f in space if f.categorical))
    rows = np.arange(np.prod(space.shape)).reshape(space.shape)
    lines = np.moveaxis(rows, column, -1).reshape(-1, factor.size)
    return [
        Curve(others.name_point(levels) or factor.name, factor, line)
        for levels, line in zip(np.ndindex(others.shape), lines, strict=True)
    ]


def find_interval(curve: Curve, is_ood: np.ndarray) -> tuple | None:
    """Returns the first and last held-out value, None if in pieces."""
    held = np.flatnonzero(np.asarray(is_ood, bool)[curve.rows])
    if len(held) < 2 or held[-1] - held[0] + 1 != len(held):
        return None
    values = curve.factor.values()
    return float(values[held[0]]), float(values[held[-1]])
