"""Kinds of regions: random shares, listed combinations, published splits.

`montero` and `orthotopic` need factors of published data, whose classes are
scaled. docs/experiments.md has examples and references.
"""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    find_keys,
    make_keys,
    parse_groups,
)
from tfcomp.datasets.published import PUBLISHED, SYNONYMS
from tfcomp.datasets.regions import REGIONS, Predicate

if TYPE_CHECKING:
    import pandas as pd

MAX_COMBINATIONS = 10**8


@REGIONS.register("random")
def make_random(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a random share of all combinations, as `0.2` or `0.2:7`."""
    share, seed = _parse_share("random", arguments)
    size = math.prod(space.shape)
    if size > MAX_COMBINATIONS:
        raise ValueError(f"must have at most {MAX_COMBINATIONS} combinations")
    places = np.random.default_rng([seed, size]).permutation(size)
    is_held_out = np.zeros(size + 1, bool)  # the last one where one is absent
    is_held_out[places[: max(1, round(share * size))]] = True
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


@REGIONS.register("file")
def make_file(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out the combinations in the rows of a CSV file: values or names."""
    frame = _read_rows(arguments)
    names = [str(name).strip() for name in frame]
    if frame.empty or not {*names} <= {*space.names}:
        rule = "must name a file with rows, whose columns are factors among"
        raise ValueError(f"{rule}: {', '.join(space.names)}")

    listed = []
    for line, cells in enumerate(frame.to_numpy().tolist(), start=2):
        index = []
        for name, cell in zip(names, cells, strict=True):
            index.append(_parse_cell(cell, space[name], line))
        listed.append(index)
    keys = np.unique(make_keys(np.array(listed)))

    partial_space = FactorSpace(tuple(space[name] for name in names))
    columns = [space.names.index(name) for name in names]

    def contains(values: np.ndarray) -> np.ndarray:
        index = partial_space.to_index(values[:, columns])
        return find_keys(make_keys(index), keys) >= 0

    return contains


def _read_rows(file: str) -> "pd.DataFrame":
    """Reads the cells of a CSV file as text."""
    import pandas as pd

    path = Path(file).expanduser()
    try:
        if not path.is_file():  # a device would be read for ever
            raise OSError(f"{path} is no file")
        return pd.read_csv(
            path, dtype=str, keep_default_na=False, index_col=False
        )
    except (OSError, ValueError) as error:
        rule = f"must name a readable CSV file with a header ({error})"
        raise ConfigError("region", rule, f"file:{file}") from error


def _parse_cell(cell: str, factor: Factor, line: int) -> int:
    """Finds the level of a cell: a name or a value."""
    text = str(cell).strip()
    if text in factor.names:
        return factor.names.index(text)
    try:
        index = factor.find_value(float(text))
    except ValueError:
        index = -1
    if index < 0:
        rule = f"must name a file of values that occur; line {line} has"
        raise ValueError(f"{rule} {factor.name} {text!r}")
    return index


@REGIONS.register("wiedemer")
def make_wiedemer(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points off the axes, or off the diagonal (`diagonal:.1`).

    On the axes, at most one group of factors leaves its middle level. On the
    diagonal, groups are at most the width apart, each factor scaled to 0..1.
    """
    match = re.fullmatch(
        r"(?:orthogonal|diagonal:(0?\.\d+))(?::(.*))?", arguments
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
    space: FactorSpace, groups: list[list[int]], width: float
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
    num_blocks, num_trained = int(match[1]), int(match[2])

    large = [factor.name for factor in space if factor.size >= num_blocks]
    names = match[3].split(",") if match[3] else large
    is_large = len({*names} & {*large}) == len(names)
    if len(names) < 2 or not is_large:
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


@REGIONS.register("montero")
def make_montero(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a split of Montero et al., as `element`."""
    columns, scales, classes = _find_split("montero", arguments, space)
    # The first and last held-out class of each factor; all must hold.
    low = classes[:, 0] * scales
    end = (classes[:, 1] + 1) * scales

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        return ((index >= low) & (index < end)).all(axis=1)

    return contains


@REGIONS.register("orthotopic")
def make_orthotopic(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points with more than n factors beyond their thresholds."""
    columns, scales, classes = _find_split("orthotopic", arguments, space)
    thresholds = classes * scales

    def contains(values: np.ndarray) -> np.ndarray:
        is_high = space.to_index(values)[:, columns] >= thresholds
        return is_high.sum(axis=1) > int(arguments)

    return contains


def _find_split(
    kind: str, arguments: str, space: FactorSpace
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Returns columns, and the scales and numbers of their classes."""
    plain = [name.lower().removeprefix("label_") for name in space.names]
    plain = [name.replace(" ", "_") for name in plain]
    names = [SYNONYMS.get(name, name) for name in plain]
    classes = {
        data: PUBLISHED.get(data).load().classes for data in PUBLISHED.names()
    }
    data = next((d for d, f in classes.items() if {*names} >= {*f}), "")
    if not data:
        listed = [f"{', '.join(f)} ({d})" for d, f in classes.items()]
        raise ValueError(
            "of this kind needs the factors of a published data set: "
            + "; ".join(listed)
        )

    published = PUBLISHED.get(data).load()
    splits = getattr(published, kind)
    if arguments not in splits:
        rule = f"one of {', '.join(splits)}" if splits else "another region"
        raise ValueError(f"must be {rule} for {data}")

    numbers = splits[arguments]
    columns = [names.index(factor) for factor in numbers]
    sizes = [classes[data][factor] for factor in numbers]
    scales = np.array(space.shape)[columns] / sizes
    return columns, scales, np.array([*numbers.values()])
