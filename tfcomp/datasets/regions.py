"""Held-out regions: sets of factor combinations that training never sees.

A region is data, a spec string (docs/experiments.md has all kinds):

    square:6-22              a kind and its bounds
    x:6-22,shape:heart       factors with an interval, a level or a class (#3)
    A|B, A&B, not:A          unions, intersections, complements
    genre:'R&B'              a level with , & or | stands in quotes

Bounds are inclusive factor values; one close to a grid value is that value, so
that printed numbers can be typed. A comparison with an absent factor (NaN) is
false, so a stripe lies in no square or corner, nor in a complement.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.plugins import Registry
from tfcomp.datasets.factors import Factor, FactorSpace, parse_groups

# From factor values [n, F] to booleans [n].
Predicate = Callable[[Array], Array]
REGIONS = Registry("region")
MAX_COMBINATIONS = 10**8  # of a space, if a random share is held out

_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
# A low bound, a dash unless it is a single value, a high bound unless open.
_BOUNDS = re.compile(rf"({_NUMBER}|min)(?:(-)({_NUMBER}|max)?)?")
_CLASSES = re.compile(r"#(\d+)(?:(-)(\d+)?)?")
_SEPARATORS = ",&|"
# A level in quotes, which may contain separators.
_QUOTED = r"""(?<=:)(?:'[^']*'|"[^"]*")"""


@dataclass(frozen=True)
class Region:
    """A held-out region.

    Attributes:
        spec: The text that was parsed.
        contains: From factor values [n, F] to booleans [n].
    """

    spec: str
    contains: Predicate


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
        contains = _parse(spec, space)
    except ConfigError:
        raise
    except ValueError as error:
        rule = str(error)
        raise ConfigError("region", rule, spec) from error
    return Region(spec, contains)


def split_parts(spec: str, separator: str) -> list[str]:
    """Splits a region at a separator that does not stand in quotes.

    Args:
        spec: As `genre:'R&B'&x:3`.
        separator: One of `,`, `&` and `|`.
    """
    part = rf"(?:{_QUOTED}|[^{separator}])*"
    start = re.escape(separator)
    return re.findall(rf"(?:^|{start})({part})", spec)


def _parse(spec: str, space: FactorSpace) -> Predicate:
    parts = split_parts(spec, "&")
    if len(parts) > 1:
        tests = [_parse(part, space) for part in parts]
        return _join(tests, np.all)

    is_factor = "not" in space.names  # as with the names of other kinds
    if spec.startswith("not:") and not is_factor:
        rest = spec.removeprefix("not:")
        test = _parse(rest, space)
        return _complement(test)

    parts = split_parts(spec, "|")
    tests = [_parse_kind(part, space) for part in parts]
    return _join(tests, np.any)


def _complement(inner: Predicate) -> Predicate:
    def contains(values: Array) -> Array:
        is_absent = np.isnan(values).any(axis=1)
        is_inside = inner(values)
        return ~is_inside & ~is_absent

    return contains


def _join(
    tests: Sequence[Predicate],
    reduce: Callable[..., Array],
) -> Predicate:
    """Joins tests by `np.all` or `np.any`."""

    def contains(values: Array) -> Array:
        results = [test(values) for test in tests]
        return reduce(results, axis=0)

    return contains


def _parse_kind(spec: str, space: FactorSpace) -> Predicate:
    kind, _, arguments = spec.partition(":")
    if kind in space.names:
        return make_box(spec, space)

    kinds = REGIONS.names()
    if kind not in kinds:
        names = [*kinds, *space.names]
        hint = suggest(kind, names)
        listed = ", ".join(kinds)
        factors = ", ".join(space.names)
        raise ValueError(f"must be one of: {listed}, or of {factors}{hint}")

    make_region = REGIONS.get(kind).load()
    return make_region(arguments, space)


@REGIONS.register("none")
def make_none(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds nothing out.

    Args:
        arguments: Nothing may stand here.
        space: The factors.

    Raises:
        ValueError: If something does.
    """
    if arguments:
        raise ValueError("takes no bounds after none")

    def contains(values: Array) -> Array:
        return np.zeros(len(values), bool)

    return contains


@REGIONS.register("square")
def make_square(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out all ordered factors in one interval, as `6-22`.

    Args:
        arguments: The interval.
        space: The factors.

    Raises:
        ValueError: If it is no interval of these factors.
    """
    tests = _test_ordered(arguments, space)
    return _join(tests, np.all)


@REGIONS.register("cross")
def make_cross(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out any ordered factor in one interval, as `11-16`.

    Args:
        arguments: The interval.
        space: The factors.

    Raises:
        ValueError: If it is no interval of these factors.
    """
    tests = _test_ordered(arguments, space)
    return _join(tests, np.any)


@REGIONS.register("corner")
def make_corner(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out all ordered factors at or above a bound, as `14`.

    Args:
        arguments: The bound, a value that all ordered factors have.
        space: The factors.

    Raises:
        ValueError: If it is no number, or outside of a factor.
    """
    _number(arguments)
    columns = _ordered(space)
    bounds = []
    for column in columns:
        factor = space.factors[column]
        bound = _read_value(arguments, factor)
        bounds.append(bound)

    def contains(values: Array) -> Array:
        is_above = values[:, columns] >= bounds
        return np.all(is_above, axis=1)

    return contains


@REGIONS.register("diagonal")
def make_diagonal(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out factors at most the half width apart, as `3`.

    Args:
        arguments: The half width, at least 0.
        space: The factors.

    Raises:
        ValueError: If it has no such form, or there are not two ordered
            factors.
    """
    half_width = _number(arguments)
    if half_width < 0:
        raise ValueError("must have a half width of at least 0")
    columns = _ordered(space)
    if len(columns) < 2:
        raise ValueError("of kind diagonal needs two ordered factors")
    # Distances of grid values are known to a few digits, as bounds are.
    steps = [space.factors[column].step for column in columns]
    limit = half_width + 1e-3 * min(steps)

    def contains(values: Array) -> Array:
        distances = np.ptp(values[:, columns], axis=1)
        return distances <= limit

    return contains


@REGIONS.register("gap")
@REGIONS.register("box")
def make_box(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out named factors in their intervals, as `x:6-22,y:0-9`.

    Args:
        arguments: Factors with an interval, a level or a class.
        space: The factors.

    Raises:
        ValueError: If a factor is unknown or named twice, or an interval wrong.
    """
    intervals: dict[str, str] = {}
    for part in split_parts(arguments, ","):
        name, _, interval = part.partition(":")
        if name in intervals:
            raise ValueError("must name each factor once")
        intervals[name] = interval

    if not intervals.keys() <= {*space.names}:
        factors = ", ".join(space.names)
        hint = "a level with , & or | stands in quotes"
        raise ValueError(f"must name factors among: {factors} ({hint})")

    tests = []
    for name, interval in intervals.items():
        column = space.names.index(name)
        test = _test_interval(column, interval, space)
        tests.append(test)
    return _join(tests, np.all)


@REGIONS.register("random")
def make_random(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out a random share of all combinations, as `0.2` or `0.2:7`.

    Args:
        arguments: The share, between 0 and 1, and a seed (by default 0).
        space: The factors.

    Raises:
        ValueError: If the share is none, or the grid too large.
    """
    share, seed = _parse_share("random", arguments)
    size = math.prod(space.shape)
    if size > MAX_COMBINATIONS:
        raise ValueError(f"must have at most {MAX_COMBINATIONS} combinations")

    seeds = [seed, size]
    rng = np.random.default_rng(seeds)
    order = rng.permutation(size)
    count = round(share * size)
    count = max(1, count)
    is_held_out = np.zeros(size + 1, bool)  # the last one where one is absent
    is_held_out[order[:count]] = True

    def contains(values: Array) -> Array:
        places = space.to_place(values)
        return is_held_out[places]

    return contains


@REGIONS.register("random_box")
def make_random_box(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out random intervals, none of a whole factor, as `0.1:3`.

    Args:
        arguments: The share of the grid, between 0 and 1, and a seed.
        space: The factors.

    Raises:
        ValueError: If the share is none, or only one factor varies.
    """
    share, seed = _parse_share("random_box", arguments)
    varied = [n for n, factor in enumerate(space) if factor.size > 1]
    if len(varied) < 2:
        raise ValueError("of this kind needs two factors")

    seeds = [seed, *space.shape]
    rng = np.random.default_rng(seeds)
    count = rng.integers(2, len(varied) + 1)
    sample = rng.choice(varied, count, replace=False)
    columns = np.sort(sample)

    sizes = np.array(space.shape)[columns]
    widths = np.round(sizes * share ** (1 / count))
    widths = np.clip(widths.astype(int), 1, sizes - 1)

    is_periodic = [space.factors[column].periodic for column in columns]
    # Only around a period may an interval start anywhere.
    inner_starts = sizes - widths + 1
    num_starts = np.where(is_periodic, sizes, inner_starts)
    starts = rng.integers(0, num_starts)

    def contains(index: Array) -> Array:
        steps = (index - starts) % sizes
        return (steps < widths).all(axis=1)

    return _test_index(space, columns, contains)


def _test_index(
    space: FactorSpace,
    columns: Sequence[int] | Array,
    contains: Predicate,
) -> Predicate:
    """Tests the grid indices of some factors; without one, a point is outside.

    Args:
        space: The factors.
        columns: The columns of the factors that are tested.
        contains: From their indices [n, columns] to booleans [n].
    """

    def test(values: Array) -> Array:
        index = space.to_index(values)
        index = index[:, columns]
        is_present = (index >= 0).all(axis=1)
        return contains(index) & is_present

    return test


def _parse_share(
    kind: str,
    arguments: str,
) -> tuple[float, int]:
    """Parses `SHARE` or `SHARE:SEED`."""
    match = re.fullmatch(r"(\d*\.?\d+(?:e-\d+)?)(?::(\d+))?", arguments)
    share = 0.0
    if match is not None:
        share = float(match[1])
    if match is None or not 0 < share < 1:
        raise ValueError(f"must be {kind}:SHARE or {kind}:SHARE:SEED, 0 to 1")
    seed = int(match[2] or 0)
    return share, seed


@REGIONS.register("wiedemer")
def make_wiedemer(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out points off the axes, or off the diagonal (`diagonal:.1`).

    On the axes, at most one group of factors leaves its middle level. On the
    diagonal, groups are at most the width apart, each factor scaled to 0..1.

    Args:
        arguments: `orthogonal` or `diagonal:WIDTH`, and groups of factors.
        space: The factors.

    Raises:
        ValueError: If these are not so, or groups do not fit the factors.
    """
    match = re.fullmatch(
        r"(?:orthogonal|diagonal:(0?\.\d+))(?::(.*))?",
        arguments,
    )
    if match is None:
        raise ValueError("must be orthogonal, or diagonal:WIDTH as diagonal:.1")
    width, text = match.groups()
    groups = parse_groups(text or "", space)
    varied = [factor for factor in space if factor.size > 1]
    fewest = min(len(groups), len(varied))
    if fewest < 2:
        raise ValueError("of this kind needs two factors")

    if width is None:
        return _leave_axes(space, groups)
    group_sizes = {len(group) for group in groups}
    if len(group_sizes) > 1:
        raise ValueError("must have groups of equal numbers of factors")
    return _leave_diagonal(space, groups, float(width))


def _leave_axes(
    space: FactorSpace,
    groups: list[list[int]],
) -> Predicate:
    middle = np.array(space.shape) // 2

    def contains(values: Array) -> Array:
        """Finds points where two groups or more are off their middle, [n]."""
        index = space.to_index(values)
        is_off = (index >= 0) & (index != middle)
        num_off = np.zeros(len(index), int)
        for group in groups:
            num_off += is_off[:, group].any(axis=1)
        return num_off > 1

    return contains


def _leave_diagonal(
    space: FactorSpace,
    groups: list[list[int]],
    width: float,
) -> Predicate:
    sizes = np.array(space.shape)
    last = np.maximum(sizes - 1, 1)
    limit = width + 1e-9

    def contains(index: Array) -> Array:
        unit = index / last  # [n, F], 0 to 1
        grouped = unit[:, groups]  # [n, groups, factors of a group]
        distances = np.ptp(grouped, axis=1)
        return (distances > limit).any(axis=1)

    return _test_index(space, range(len(space)), contains)


@REGIONS.register("uselis")
def make_uselis(
    arguments: str,
    space: FactorSpace,
) -> Predicate:
    """Holds out all but the (n, k) training set, as `8:3` or `8:3:x,y`.

    The values of each factor are n blocks of neighbors. Training combines
    block i of the first factor with blocks i .. i + k - 1, modulo n, of every
    other one. By default the factors are all with n values or more.

    Args:
        arguments: The numbers n > k > 0, and names of factors.
        space: The factors.

    Raises:
        ValueError: If these are not so, or two factors are too small.
    """
    rule = "must be uselis:N:K, N above K above 0"
    match = re.fullmatch(r"(\d{1,6}):(\d{1,6})(?::(.+))?", arguments)
    if match is None:
        raise ValueError(rule)
    num_blocks = int(match[1])
    num_trained = int(match[2])
    if not 0 < num_trained < num_blocks:
        raise ValueError(rule)

    columns = _find_blocked(match[3], num_blocks, space)
    sizes = np.array(space.shape)
    sizes = sizes[columns]

    def contains(index: Array) -> Array:
        """Finds points whose blocks lie too far apart to be trained, [n]."""
        blocks = index * num_blocks // sizes
        first = blocks[:, :1]
        others = blocks[:, 1:]
        steps = (others - first) % num_blocks
        return (steps >= num_trained).any(axis=1)

    return _test_index(space, columns, contains)


def _find_blocked(
    text: str | None,
    num_blocks: int,
    space: FactorSpace,
) -> list[int]:
    """Finds the columns of the factors whose values are made blocks.

    Args:
        text: Names of factors, as `x,y`; by default all that are large enough.
        num_blocks: The smallest number of values of each.
        space: The factors.
    """
    large = [factor.name for factor in space if factor.size >= num_blocks]
    names = text.split(",") if text else large
    distinct = {*names}
    is_repeated = len(distinct) < len(names)
    if len(names) < 2 or is_repeated or not distinct <= {*large}:
        raise ValueError(
            f"must have two factors or more with {num_blocks} values or more, "
            f"among which are: {', '.join(large) or 'none'}"
        )
    return [space.names.index(name) for name in names]


def _test_ordered(
    text: str,
    space: FactorSpace,
) -> list[Predicate]:
    """Tests each ordered factor for an interval `LOW-HIGH`."""
    match = _BOUNDS.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError("must have bounds of the form LOW-HIGH")
    columns = _ordered(space)
    return [_test_interval(column, text, space) for column in columns]


def _test_interval(
    column: int,
    text: str,
    space: FactorSpace,
) -> Predicate:
    """Tests a factor for values, numbers of levels as `#1-3`, or a name."""
    factor = space.factors[column]
    name = text
    quoted = re.fullmatch(r"(['\"])(.+)\1", text, re.DOTALL)
    if quoted and text not in factor.names:
        name = quoted[2]
    if name in factor.names:
        place = factor.names.index(name)
        text = f"#{place}"

    is_class = text.startswith("#")
    if not is_class and factor.is_named_by_numbers:
        # An interval could be one of names or of values.
        raise ValueError(f"must have one of {_list_names(factor)}, or #")
    read = _read_class if is_class else _read_value
    pattern = _CLASSES if is_class else _BOUNDS
    first, last = _split_interval(pattern, text, factor)
    low = read(first, factor)
    high = read(last, factor)
    if low > high and not factor.periodic:
        raise ValueError("must have its lower bound first")
    # The end of a period is its start; an open interval ends before.
    is_end = high == factor.high and last != "max"
    is_round = factor.periodic and is_end and not is_class

    def contains(values: Array) -> Array:
        """Tells which rows [n, F] lie in the interval; not those of NaN."""
        numbers = values[:, column]
        is_present = ~np.isnan(numbers)
        if is_class:
            numbers = factor.to_index(numbers)
        is_above = numbers >= low
        is_below = numbers <= high
        if low <= high:
            is_inside = is_above & is_below
        else:
            is_inside = is_above | is_below  # round the period
        if is_round:
            is_inside |= numbers == factor.low
        return is_inside & is_present

    return contains


def _list_names(factor: Factor) -> str:
    """Lists levels as regions read them; in quotes or by number if needed."""
    names = []
    separators = {*_SEPARATORS}
    for place, name in enumerate(factor.names):
        if not separators.isdisjoint(name):
            name = f"'{name}' (#{place})"
        names.append(name)
    return ", ".join(names)


def _split_interval(
    pattern: re.Pattern,
    text: str,
    factor: Factor,
) -> tuple[str, str]:
    """Splits an interval, as `6-22`, `6-` or `6`, into two bounds."""
    match = pattern.fullmatch(text)
    if match is None:
        rule = "must have bounds of the form LOW-HIGH"
        if factor.names:
            rule += f", or one of {_list_names(factor)}"
        raise ValueError(rule)
    first, dash, last = match.groups()
    if not dash:
        last = first
    return first, last or "max"


def _read_class(text: str, factor: Factor) -> int:
    last = factor.size - 1
    if text == "max":
        return last
    number = int(text)
    if number > last:
        ends = f"#0 to #{last}"
        raise ValueError(f"must lie in the range of {factor.name}, {ends}")
    return number


def _read_value(text: str, factor: Factor) -> float:
    """Reads a bound; one close to a grid value is that value.

    Bounds of continuous factors, whose points lie between, stay as given.
    """
    if text == "min":
        bound = factor.low
    elif text == "max":
        bound = factor.high
    else:
        bound = float(text)

    index = factor.find_value(bound)
    if index >= 0 and not factor.continuous:
        values = factor.values()
        return float(values[index])

    slack = 0.0
    if not factor.periodic:
        slack = factor.step / 2
    end = max(bound, factor.low)
    end = min(end, factor.high)
    distance = abs(bound - end)
    if bound != end and distance >= slack:
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
