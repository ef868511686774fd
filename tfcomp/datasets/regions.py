"""Held-out regions: sets of factor combinations that training never sees.

A region is data, a spec string (docs/experiments.md has all kinds):

    square:6-22              a kind and its bounds
    x:6-22,shape:heart       factors with an interval, a level or a class (#3)
    A|B, A&B, not:A          unions, intersections, complements
    hull:A                   combinations of A outside of the convex hull of
                             the others

Bounds are inclusive factor values; one close to a grid value is that value, so
that printed numbers can be typed. A comparison with an absent factor (NaN) is
false, so a stripe lies in no square or corner, nor in a complement.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.plugins import Registry
from tfcomp.datasets.factors import Factor, FactorSpace

Predicate = Callable[[np.ndarray], np.ndarray]
REGIONS = Registry("region")
MAX_HULL = 6  # dimensions of a convex hull

_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
# A low bound, a dash unless it is a single value, a high bound unless open.
_BOUNDS = re.compile(rf"({_NUMBER}|min)(?:(-)({_NUMBER}|max)?)?")
_CLASSES = re.compile(r"#(\d+)(?:(-)(\d+)?)?")


@dataclass(frozen=True)
class Region:
    """A parsed spec; `contains` maps factor values [n, F] to booleans [n]."""

    spec: str
    contains: Predicate


def split_region(spec: str) -> tuple[str, str]:
    """Returns the kind of a region and its bounds: `square`, `6-22`."""
    kind, _, bounds = spec.partition(":")
    return kind, bounds


def parse_region(
    spec: str, space: FactorSpace, points: np.ndarray | None = None
) -> Region:
    """Makes a region of `space` from its spec.

    Hulls enclose the points [n, F] that exist, by default the grid.

    Raises:
        ConfigError: If the spec is malformed or does not fit the space.
    """
    try:
        if not spec.startswith("hull:"):
            return Region(spec, _parse(spec, space))
        every = space.grid() if points is None else points
        inner = _parse(spec.removeprefix("hull:"), space)
        return Region(spec, _leave_hull(inner, every, space))
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError("region", str(error), spec) from error


def _parse(spec: str, space: FactorSpace) -> Predicate:
    if "&" in spec:
        parts = [_parse(part, space) for part in spec.split("&")]
        return _combine(np.all, parts)
    if spec.startswith("not:"):
        inner = _parse(spec.removeprefix("not:"), space)
        return lambda values: ~inner(values) & ~np.isnan(values).any(axis=1)
    parts = [_parse_kind(part, space) for part in spec.split("|")]
    return _combine(np.any, parts)


def _leave_hull(
    inner: Predicate, points: np.ndarray, space: FactorSpace
) -> Predicate:
    """Returns the part outside of the hull of other points' ordered factors."""
    from scipy.spatial import ConvexHull, QhullError

    columns = _ordered(space)
    if not 2 <= len(columns) <= MAX_HULL:
        raise ValueError(f"of kind hull needs 2 to {MAX_HULL} ordered factors")
    scales = np.array([space.factors[c].step for c in columns])
    known = np.unique(points[~inner(points)][:, columns], axis=0) / scales
    try:
        planes = ConvexHull(known).equations
    except (QhullError, ValueError, IndexError):
        raise ValueError("must leave more than a plane of points") from None

    def contains(values: np.ndarray) -> np.ndarray:
        apart = values[:, columns] / scales @ planes[:, :-1].T + planes[:, -1]
        return inner(values) & (apart.max(axis=1) > 1e-6)

    return contains


def _combine(join: Callable, tests: list[Predicate]) -> Predicate:
    return lambda values: join([test(values) for test in tests], axis=0)


def _parse_kind(spec: str, space: FactorSpace) -> Predicate:
    kind, arguments = split_region(spec)
    if kind in space.names:
        kind, arguments = "box", spec
    if kind not in REGIONS.names():
        hint = suggest(kind, [*REGIONS.names(), *space.names])
        kinds, names = ", ".join(REGIONS.names()), ", ".join(space.names)
        raise ValueError(f"must be one of: {kinds}, or of {names}{hint}")
    return REGIONS.get(kind).load()(arguments, space)


@REGIONS.register("none")
def make_none(arguments: str, space: FactorSpace) -> Predicate:
    """Holds nothing out."""
    if arguments:
        raise ValueError("takes no bounds after none")
    return lambda values: np.zeros(len(values), bool)


@REGIONS.register("square")
def make_square(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out all ordered factors in one interval, as `6-22`."""
    return _combine(np.all, _interval_tests(arguments, space))


@REGIONS.register("cross")
def make_cross(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out any ordered factor in one interval, as `11-16`."""
    return _combine(np.any, _interval_tests(arguments, space))


@REGIONS.register("corner")
def make_corner(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out all ordered factors at or above a bound, as `14`."""
    _number(arguments)
    columns = _ordered(space)
    bounds = [_read_value(arguments, space.factors[c]) for c in columns]
    return lambda values: np.all(values[:, columns] >= bounds, axis=1)


@REGIONS.register("diagonal")
def make_diagonal(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out factors at most the half width apart, as `3`."""
    half_width = _number(arguments)
    if half_width < 0:
        raise ValueError("must have a half width of at least 0")
    columns = _ordered(space)
    if len(columns) < 2:
        raise ValueError("of kind diagonal needs two ordered factors")
    # Distances of grid values are known to a few digits, as bounds are.
    half_width += 1e-3 * min(space.factors[c].step for c in columns)
    return lambda values: np.ptp(values[:, columns], axis=1) <= half_width


@REGIONS.register("gap")
@REGIONS.register("box")
def make_box(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out named factors in their intervals, as `x:6-22,y:0-9`."""
    parts = [part.partition(":") for part in arguments.split(",")]
    names = [name for name, _, _ in parts]
    if len({*names}) < len(names):
        raise ValueError("must name each factor once")
    if not {*names} <= {*space.names}:
        raise ValueError(f"must name factors among: {', '.join(space.names)}")
    tests = [
        _interval_test(space.names.index(name), interval, space)
        for name, _, interval in parts
    ]
    return _combine(np.all, tests)


def _interval_tests(text: str, space: FactorSpace) -> list[Predicate]:
    match = _BOUNDS.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError("must have bounds of the form LOW-HIGH")
    return [_interval_test(column, text, space) for column in _ordered(space)]


def _interval_test(column: int, text: str, space: FactorSpace) -> Predicate:
    factor = space.factors[column]
    if text in factor.names:
        text = f"#{factor.names.index(text)}"
    is_class = text.startswith("#")
    match = (_CLASSES if is_class else _BOUNDS).fullmatch(text)
    if match is None:
        names = f", or one of {', '.join(factor.names)}" if factor.names else ""
        raise ValueError(f"must have bounds of the form LOW-HIGH{names}")
    first, dash, last = match.groups()
    last = (last or "max") if dash else first
    if len(factor.named) and not is_class:
        ends = {"min": -np.inf, "max": np.inf}
        low, high = (ends.get(end) or float(end) for end in (first, last))
        is_wrapped = factor.periodic and low > high
        join = np.logical_or if is_wrapped else np.logical_and
        is_in = join(factor.named >= low, factor.named <= high)
        if not is_in.any():
            raise ValueError(f"must hold one of {', '.join(factor.names)}")
        return lambda values: np.append(is_in, False)[
            factor.to_index(values[:, column])
        ]
    read = _read_class if is_class else _read_value
    low, high = read(first, factor), read(last, factor)
    wraps = low > high
    if wraps and not factor.periodic:
        raise ValueError("must have its lower bound first")
    # The end of a period is its start; an open interval ends before.
    is_number = last != "max" and not is_class
    is_round = factor.periodic and is_number and high == factor.high

    def test(values: np.ndarray) -> np.ndarray:
        given = values[:, column]
        if is_class:
            index = factor.to_index(given)
            given = np.where(index < 0, np.nan, index)
        above, below = given >= low, given <= high
        inside = above | below if wraps else above & below
        return inside | (given == factor.low) if is_round else inside

    return test


def _read_class(text: str, factor: Factor) -> float:
    last = factor.size - 1
    number = last if text == "max" else int(text)
    if number > last:
        ends = f"#0 to #{last}"
        raise ValueError(f"must lie in the range of {factor.name}, {ends}")
    return number


def _read_value(text: str, factor: Factor) -> float:
    low, high = factor.low, factor.high
    bound = {"min": low, "max": high}.get(text)
    bound = float(text) if bound is None else bound
    if (index := factor.find_value(bound)) >= 0:
        return float(factor.values()[index])
    end = float(np.clip(bound, low, high))
    slack = 0.0 if factor.periodic else factor.step / 2
    if bound != end and abs(bound - end) >= slack:
        ends = f"{low:g} to {high:g}"
        raise ValueError(f"must lie in the range of {factor.name}, {ends}")
    return end


def _ordered(space: FactorSpace) -> list[int]:
    if not space.ordered:
        raise ValueError("of this kind needs an ordered factor")
    return list(space.ordered)


def _number(text: str) -> float:
    if re.fullmatch(_NUMBER, text) is None:
        raise ValueError("must have one number after its kind")
    return float(text)
