"""Held-out regions: sets of factor combinations that training never sees.

A region is data, a spec string; bounds are inclusive and in factor values:

    square:6-22         every factor in [6, 22] (the donut's hole)
    corner:14           every factor >= 14
    cross:11-16         any factor in [11, 16]
    gap:x:10-16         the factor x in [10, 16]
    box:x:6-22,y:0-9    a product of intervals of the named factors
    diagonal:3          |x - y| <= 3 (largest distance of any two factors)
    none                nothing is held out

Categorical factors are ruled by `gap` and `box` only. A periodic factor
accepts an interval that wraps (`gap:angle:350-10`). A comparison with an
absent factor (NaN) is false, so a stripe lies in no square or corner.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.registry import Registry
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.factors import FactorSpace

Predicate = Callable[[np.ndarray], np.ndarray]
REGIONS = Registry("region")

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_INTERVAL = re.compile(rf"({_NUMBER})-({_NUMBER})")


@dataclass(frozen=True)
class Region:
    """A parsed region.

    Attributes:
        spec: The string it was made from.
        contains: Maps factor values [n, F] to booleans [n].
    """

    spec: str
    contains: Predicate


def parse_region(spec: str, space: FactorSpace) -> Region:
    """Makes a region of `space` from its spec.

    Raises:
        ConfigError: If the spec is malformed or does not fit the space.
    """
    kind, _, arguments = spec.partition(":")
    make_predicate = REGIONS.get(kind).load()
    try:
        return Region(spec, make_predicate(arguments, space))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError("region", str(error), spec) from error


@REGIONS.register("none")
def make_none(arguments: str, space: FactorSpace) -> Predicate:
    """Holds nothing out."""
    if arguments:
        raise ValueError("takes no bounds after none")
    return lambda values: np.zeros(len(values), bool)


@REGIONS.register("square")
def make_square(arguments: str, space: FactorSpace) -> Predicate:
    """Every ordered factor in one interval, as `6-22`."""
    tests = _interval_tests(arguments, space)
    return lambda values: np.all([test(values) for test in tests], axis=0)


@REGIONS.register("cross")
def make_cross(arguments: str, space: FactorSpace) -> Predicate:
    """Any ordered factor in one interval, as `11-16`."""
    tests = _interval_tests(arguments, space)
    return lambda values: np.any([test(values) for test in tests], axis=0)


@REGIONS.register("corner")
def make_corner(arguments: str, space: FactorSpace) -> Predicate:
    """Every ordered factor at least the bound, as `14`."""
    bound = _number(arguments)
    columns = _ordered(space)
    for column in columns:
        _check_inside(space.factors[column], bound)
    return lambda values: np.all(values[:, columns] >= bound, axis=1)


@REGIONS.register("diagonal")
def make_diagonal(arguments: str, space: FactorSpace) -> Predicate:
    """Factors closer to each other than the half width, as `3`."""
    half_width = _number(arguments)
    if half_width < 0:
        raise ValueError("must have a half width of at least 0")
    columns = _ordered(space)
    if len(columns) < 2:
        raise ValueError("of kind diagonal needs two ordered factors")

    def contains(values: np.ndarray) -> np.ndarray:
        chosen = values[:, columns]
        return chosen.max(axis=1) - chosen.min(axis=1) <= half_width

    return contains


@REGIONS.register("gap")
@REGIONS.register("box")
def make_box(arguments: str, space: FactorSpace) -> Predicate:
    """Named factors in their intervals, as `x:10-16` or `x:6-22,y:0-9`."""
    tests = []
    named = [part.partition(":") for part in arguments.split(",")]
    if len({name for name, _, _ in named}) < len(named):
        raise ValueError("must name each factor once")
    for name, _, interval in named:
        if name not in space.names:
            known = ", ".join(space.names)
            raise ValueError(f"must name factors among: {known}")
        tests.append(_interval_test(space.names.index(name), interval, space))
    return lambda values: np.all([test(values) for test in tests], axis=0)


def _interval_tests(text: str, space: FactorSpace) -> list[Predicate]:
    return [_interval_test(column, text, space) for column in _ordered(space)]


def _interval_test(column: int, text: str, space: FactorSpace) -> Predicate:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError("must have bounds of the form LOW-HIGH")
    low, high = map(float, match.groups())
    factor = space.factors[column]
    _check_inside(factor, low)
    _check_inside(factor, high)
    wraps = low > high
    if wraps and not factor.periodic:
        raise ValueError("must have its lower bound first")

    def test(values: np.ndarray) -> np.ndarray:
        above, below = values[:, column] >= low, values[:, column] <= high
        return above | below if wraps else above & below

    return test


def _ordered(space: FactorSpace) -> list[int]:
    if not space.ordered:
        raise ValueError("of this kind needs an ordered factor")
    return list(space.ordered)


def _number(text: str) -> float:
    if re.fullmatch(_NUMBER, text) is None:
        raise ValueError("must have one number after its kind")
    return float(text)


def _check_inside(factor: Factor, bound: float) -> None:
    if not factor.low <= bound <= factor.high:
        raise ValueError(
            f"must lie in the range of {factor.name}, "
            f"{factor.low:g} to {factor.high:g}"
        )
