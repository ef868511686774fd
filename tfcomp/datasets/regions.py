"""Held-out regions: sets of factor combinations that training never sees.

A region is data, a spec string (docs/experiments.md has all kinds):

    square:6-22              a kind and its bounds
    x:6-22,shape:heart       factors with an interval, a level or a class (#3)
    A|B, A&B, not:A          unions, intersections, complements

Bounds are inclusive factor values; one close to a grid value is that value, so
that printed numbers can be typed. A comparison with an absent factor (NaN) is
false, so a stripe lies in no square or corner, nor in a complement.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.plugins import Registry
from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    parse_groups,
)

# From factor values [n, F] to booleans [n].
Predicate = Callable[[np.ndarray], np.ndarray]
REGIONS = Registry("region")
MAX_COMBINATIONS = 10**8  # of a space of which a random share is held out

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


def parse_region(spec: str, space: FactorSpace) -> Region:
    """Makes a region of `space` from its spec.

    Args:
        spec: The text of `--region`.
        space: The factors.

    Raises:
        ConfigError: If the spec is malformed or does not fit the space.

    Example:
        >>> from tfcomp.datasets.factors import make_pixel_space
        >>> region = parse_region("square:6-22", make_pixel_space(28))
        >>> region.contains(np.array([[6, 22], [5, 22]]))
        array([ True, False])
    """
    try:
        return Region(spec, _parse(spec, space))
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError("region", str(error), spec) from error


def _parse(spec: str, space: FactorSpace) -> Predicate:
    if "&" in spec:
        return _hold_all([_parse(part, space) for part in spec.split("&")])
    if not spec.startswith("not:"):
        parts = spec.split("|")
        return _hold_any([_parse_kind(part, space) for part in parts])

    inner = _parse(spec.removeprefix("not:"), space)

    def contains(values: np.ndarray) -> np.ndarray:
        is_absent = np.isnan(values).any(axis=1)
        return ~inner(values) & ~is_absent

    return contains


def _hold_all(tests: Sequence[Predicate]) -> Predicate:
    return lambda values: np.all([test(values) for test in tests], axis=0)


def _hold_any(tests: Sequence[Predicate]) -> Predicate:
    return lambda values: np.any([test(values) for test in tests], axis=0)


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
    return _hold_all(_test_ordered(arguments, space))


@REGIONS.register("cross")
def make_cross(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out any ordered factor in one interval, as `11-16`."""
    return _hold_any(_test_ordered(arguments, space))


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
        tests.append(_test_interval(column, interval, space))
    return _hold_all(tests)


@REGIONS.register("random")
def make_random(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a random share of all combinations, as `0.2` or `0.2:7`."""
    share, seed = _parse_share("random", arguments)
    size = math.prod(space.shape)
    if size > MAX_COMBINATIONS:
        raise ValueError(f"must have at most {MAX_COMBINATIONS} combinations")

    rng = np.random.default_rng([seed, size])
    places = rng.permutation(size)
    count = max(1, round(share * size))
    is_held_out = np.zeros(size + 1, bool)  # the last one where one is absent
    is_held_out[places[:count]] = True
    return lambda values: is_held_out[space.to_place(values)]


@REGIONS.register("random_box")
def make_random_box(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out random intervals, none of a whole factor, as `0.1:3`."""
    share, seed = _parse_share("random_box", arguments)
    sizes = np.array(space.shape)
    varied = np.flatnonzero(sizes > 1)
    if len(varied) < 2:
        raise ValueError("of this kind needs two factors")

    rng = np.random.default_rng([seed, *sizes])
    count = rng.integers(2, len(varied) + 1)
    columns = np.sort(rng.choice(varied, count, replace=False))
    sizes = sizes[columns]
    widths = np.round(sizes * share ** (1 / count)).astype(int)
    widths = np.clip(widths, 1, sizes - 1)
    is_round = np.array([space.factors[column].periodic for column in columns])
    starts = rng.integers(0, np.where(is_round, sizes, sizes - widths + 1))

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        is_inside = (index - starts) % sizes < widths
        return (is_inside & (index >= 0)).all(axis=1)

    return contains


def _parse_share(kind: str, arguments: str) -> tuple[float, int]:
    """Parses `SHARE` or `SHARE:SEED`."""
    match = re.fullmatch(r"(\d*\.?\d+(?:e-\d+)?)(?::(\d+))?", arguments)
    if match is None or not 0 < float(match[1]) < 1:
        raise ValueError(f"must be {kind}:SHARE or {kind}:SHARE:SEED, 0 to 1")
    return float(match[1]), int(match[2] or 0)


@REGIONS.register("wiedemer")
def make_wiedemer(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points off the axes, or off the diagonal (`diagonal:.1`).

    On the axes, at most one group of factors leaves its middle level. On the
    diagonal, groups are at most the width apart, each factor scaled to 0..1.
    """
    match = re.fullmatch(
        r"(?:orthogonal|diagonal:(0?\.\d+))(?::(.*))?",
        arguments,
    )
    if match is None:
        raise ValueError("must be orthogonal, or diagonal:WIDTH as diagonal:.1")
    width, text = match.groups()
    groups = parse_groups(text or "", space)
    if len(groups) < 2 or math.prod(space.shape) == max(space.shape):
        raise ValueError("of this kind needs two factors")

    if width is None:
        return _leave_axes(space, groups)
    if len({len(group) for group in groups}) > 1:
        raise ValueError("must have groups of as many factors each")
    return _leave_diagonal(space, groups, float(width))


def _leave_axes(space: FactorSpace, groups: list[list[int]]) -> Predicate:
    middle = np.array(space.shape) // 2

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)
        is_off = (index != middle) & (index >= 0)
        num_off = sum(is_off[:, group].any(axis=1) for group in groups)
        return np.greater(num_off, 1)

    return contains


def _leave_diagonal(
    space: FactorSpace,
    groups: list[list[int]],
    width: float,
) -> Predicate:
    last = np.maximum(np.array(space.shape) - 1, 1)

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)
        unit = index / last  # [n, F], 0 to 1
        distances = np.ptp(unit[:, groups], axis=1)  # [n, factors of a group]
        is_apart = (distances > width + 1e-9).any(axis=1)
        return is_apart & (index >= 0).all(axis=1)

    return contains


@REGIONS.register("uselis")
def make_uselis(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out all but the (n, k) training set, as `8:3` or `8:3:x,y`.

    The values of each factor are n blocks of neighbors. Training combines
    block i of the first factor with blocks i .. i + k - 1, modulo n, of every
    other one. By default the factors are all with n values or more.
    """
    match = re.fullmatch(r"(\d{1,6}):(\d{1,6})(?::(.+))?", arguments)
    if match is None or not 0 < int(match[2]) < int(match[1]):
        raise ValueError("must be uselis:N:K, N above K above 0")
    num_blocks = int(match[1])
    num_trained = int(match[2])

    large = [factor.name for factor in space if factor.size >= num_blocks]
    names = match[3].split(",") if match[3] else large
    if len(names) < 2 or len({*names} & {*large}) < len(names):
        raise ValueError(
            f"must have two factors or more with {num_blocks} values or more, "
            f"among which are: {', '.join(large) or 'none'}"
        )
    columns = [space.names.index(name) for name in names]
    sizes = np.array(space.shape)[columns]

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        blocks = index * num_blocks // sizes
        steps = (blocks[:, 1:] - blocks[:, :1]) % num_blocks
        is_far = (steps >= num_trained).any(axis=1)
        return is_far & (index >= 0).all(axis=1)

    return contains


def _test_ordered(text: str, space: FactorSpace) -> list[Predicate]:
    """Tests each ordered factor for an interval `LOW-HIGH`."""
    match = _BOUNDS.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError("must have bounds of the form LOW-HIGH")
    return [_test_interval(column, text, space) for column in _ordered(space)]


def _test_interval(column: int, text: str, space: FactorSpace) -> Predicate:
    """Tests a factor for values, numbers of levels as `#1-3`, or a name."""
    factor = space.factors[column]
    if text in factor.names:
        text = f"#{factor.names.index(text)}"

    if text.startswith("#"):
        test = _test_classes(text, factor)
    elif factor.is_named_by_numbers:
        # An interval could be one of names or of values.
        raise ValueError(f"must have one of {', '.join(factor.names)}, or #")
    else:
        test = _test_values(text, factor)
    return lambda values: test(values[:, column])


def _test_classes(text: str, factor: Factor) -> Predicate:
    """Tests values [n] of a factor for an interval of classes, as `#1-3`."""
    first, last = _split_interval(_CLASSES, text, factor)
    low = _read_class(first, factor)
    high = _read_class(last, factor)
    _check_order(low, high, factor)

    def test(values: np.ndarray) -> np.ndarray:
        index = factor.to_index(values)
        return _lie_between(index, low, high) & (index >= 0)

    return test


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


def _test_values(text: str, factor: Factor) -> Predicate:
    """Tests values [n] of a factor for an interval."""
    first, last = _split_interval(_BOUNDS, text, factor)
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


def _read_class(text: str, factor: Factor) -> int:
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
