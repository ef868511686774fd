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
    """A held-out region.

    Attributes:
        spec: The text that was parsed.
        contains: From factor values [n, F] to booleans [n].
    """

    spec: str
    contains: Predicate


def split_region(spec: str) -> tuple[str, str]:
    """Splits a region into its kind and its bounds: `square`, `6-22`."""
    kind, _, bounds = spec.partition(":")
    return kind, bounds


def parse_region(
    spec: str, space: FactorSpace, points: np.ndarray | None = None
) -> Region:
    """Makes a region of `space` from its spec.

    Args:
        spec: The text of `--region`.
        space: The factors.
        points: Factor values of the combinations that exist [n, F], which
            hulls enclose; by default the grid.

    Raises:
        ConfigError: If the spec is malformed or does not fit the space.

    Example:
        >>> from tfcomp.datasets.factors import make_pixel_space
        >>> region = parse_region("square:6-22", make_pixel_space(28))
        >>> region.contains(np.array([[6, 22], [5, 22]]))
        array([ True, False])
    """
    try:
        if not spec.startswith("hull:"):
            return Region(spec, _parse(spec, space))
        inner = _parse(spec.removeprefix("hull:"), space)
        if points is None:
            points = space.grid()
        return Region(spec, _leave_hull(inner, points, space))
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError("region", str(error), spec) from error


def _parse(spec: str, space: FactorSpace) -> Predicate:
    if "&" in spec:
        return _combine(np.all, [_parse(p, space) for p in spec.split("&")])
    if spec.startswith("not:"):
        inner = _parse(spec.removeprefix("not:"), space)
        return lambda values: ~inner(values) & ~np.isnan(values).any(axis=1)
    return _combine(np.any, [_parse_kind(p, space) for p in spec.split("|")])


def _leave_hull(
    inner: Predicate, points: np.ndarray, space: FactorSpace
) -> Predicate:
    """Returns the part outside of the hull of other points' ordered factors."""
    from scipy.spatial import ConvexHull, QhullError

    columns = _ordered(space)
    if not 2 <= len(columns) <= MAX_HULL:
        raise ValueError(f"of kind hull needs 2 to {MAX_HULL} ordered factors")
    steps = np.array([space.factors[column].step for column in columns])
    others = np.unique(points[~inner(points)][:, columns], axis=0)
    try:
        planes = ConvexHull(others / steps).equations
    except (QhullError, ValueError, IndexError):
        raise ValueError("must leave more than a plane of points") from None

    normals = planes[:, :-1]
    offsets = planes[:, -1]

    def contains(values: np.ndarray) -> np.ndarray:
        distances = values[:, columns] / steps @ normals.T + offsets
        return inner(values) & (distances.max(axis=1) > 1e-6)

    return contains


def _combine(join: Callable, tests: list[Predicate]) -> Predicate:
    return lambda values: join([test(values) for test in tests], axis=0)


def _parse_kind(spec: str, space: FactorSpace) -> Predicate:
    kind, arguments = split_region(spec)
    if kind in space.names:
        return make_box(spec, space)
    if kind not in REGIONS.names():
        hint = suggest(kind, [*REGIONS.names(), *space.names])
        kinds = ", ".join(REGIONS.names())
        names = ", ".join(space.names)
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

    tests = []
    for name, _, interval in parts:
        column = space.names.index(name)
        tests.append(_interval_test(column, interval, space))
    return _combine(np.all, tests)


def _interval_tests(text: str, space: FactorSpace) -> list[Predicate]:
    """Tests each ordered factor for an interval `LOW-HIGH`."""
    match = _BOUNDS.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError("must have bounds of the form LOW-HIGH")
    return [_interval_test(column, text, space) for column in _ordered(space)]


def _interval_test(column: int, text: str, space: FactorSpace) -> Predicate:
    """Tests a factor for values, numbers of levels as `#1-3`, or a name."""
    factor = space.factors[column]
    if text in factor.names:
        text = f"#{factor.names.index(text)}"
    if text.startswith("#"):
        first, last = _split_interval(_CLASSES, text, factor)
        low, high = _read_class(first, factor), _read_class(last, factor)
        numbers = np.arange(factor.size)
    elif len(factor.named):
        first, last = _split_interval(_BOUNDS, text, factor)
        ends = {"min": -np.inf, "max": np.inf}
        low = float(ends.get(first, first))
        high = float(ends.get(last, last))
        numbers = factor.named
    else:
        first, last = _split_interval(_BOUNDS, text, factor)
        test = _test_values(first, last, factor)
        return lambda values: test(values[:, column])

    _check_order(low, high, factor)
    is_level = _lie_between(numbers, low, high)
    if not is_level.any():
        raise ValueError(f"must hold one of {', '.join(factor.names)}")
    is_level = np.append(is_level, False)  # at -1, where the factor is absent
    return lambda values: is_level[factor.to_index(values[:, column])]


def _split_interval(
    pattern: re.Pattern, text: str, factor: Factor
) -> tuple[str, str]:
    """Splits an interval, as `6-22`, `6-` or `6`, into two bounds."""
    match = pattern.fullmatch(text)
    if match is None:
        rule = "must have bounds of the form LOW-HIGH"
        if factor.names:
            rule += f", or one of {', '.join(factor.names)}"
        raise ValueError(rule)
    first, dash, last = match.groups()
    if not dash:
        return first, first
    return first, last or "max"


def _test_values(first: str, last: str, factor: Factor) -> Predicate:
    """Tests values [n] of a factor for an interval."""
    low = _read_value(first, factor)
    high = _read_value(last, factor)
    # The end of a period is its start; an open interval ends before.
    is_round = factor.periodic and last != "max" and high == factor.high
    _check_order(low, high, factor)

    def test(values: np.ndarray) -> np.ndarray:
        is_inside = _lie_between(values, low, high)
        return is_inside | (is_round & (values == factor.low))

    return test


def _check_order(low: float, high: float, factor: Factor) -> None:
    if low > high and not factor.periodic:
        raise ValueError("must have its lower bound first")


def _lie_between(numbers: np.ndarray, low: float, high: float) -> np.ndarray:
    """Marks the numbers in an interval, round the period if `low` is above."""
    if low <= high:
        return (numbers >= low) & (numbers <= high)
    return (numbers >= low) | (numbers <= high)


def _read_class(text: str, factor: Factor) -> float:
    last = factor.size - 1
    number = last if text == "max" else int(text)
    if number > last:
        ends = f"#0 to #{last}"
        raise ValueError(f"must lie in the range of {factor.name}, {ends}")
    return number


def _read_value(text: str, factor: Factor) -> float:
    """Reads a bound; one close to a grid value is that value."""
    if text == "min":
        bound = factor.low
    elif text == "max":
        bound = factor.high
    else:
        bound = float(text)
    index = factor.find_value(bound)
    if index >= 0:
        return float(factor.values()[index])

    end = float(np.clip(bound, factor.low, factor.high))
    slack = 0.0 if factor.periodic else factor.step / 2
    if bound != end and abs(bound - end) >= slack:
        ends = f"{factor.low:g} to {factor.high:g}"
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
