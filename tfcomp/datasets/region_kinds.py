"""Kinds of regions: random shares, listed combinations, published splits.

`montero` and `orthotopic` need factors of published data, whose classes are
scaled. docs/experiments.md has examples and references.
"""

import math
import re
from pathlib import Path

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

MAX_COMBINATIONS = 10**8


@REGIONS.register("random")
def make_random(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a random share of all combinations, as `0.2` or `0.2:7`."""
    share, seed = _parse_share("random", arguments)
    size = _count(space)
    chosen = np.random.default_rng([seed, size]).permutation(size)
    return _contain(chosen[: max(1, round(share * size))], space)


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
    width = np.round(sizes * share ** (1 / count)).astype(int)
    width = np.clip(width, 1, sizes - 1)
    wraps = np.array([space.factors[column].periodic for column in columns])
    first = rng.integers(0, np.where(wraps, sizes, sizes - width + 1))

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        is_inside = ((index - first) % sizes < width) & (index >= 0)
        return is_inside.all(axis=1)

    return contains


def _parse_share(kind: str, arguments: str) -> tuple[float, int]:
    match = re.fullmatch(r"(\d*\.?\d+(?:e-\d+)?)(?::(\d+))?", arguments)
    if match is None or not 0 < float(match[1]) < 1:
        raise ValueError(f"must be {kind}:SHARE or {kind}:SHARE:SEED, 0 to 1")
    return float(match[1]), int(match[2] or 0)


@REGIONS.register("file")
def make_file(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out the combinations in the rows of a CSV file: values or names."""
    import pandas as pd

    path = Path(arguments).expanduser()
    try:
        if not path.is_file():  # a device would be read for ever
            raise OSError(f"{path} is no file")
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, index_col=False
        )
    except (OSError, ValueError) as error:
        rule = f"must name a readable CSV file with a header ({error})"
        raise ConfigError("region", rule, f"file:{arguments}") from error
    names = [str(name).strip() for name in frame]
    if frame.empty or not {*names} <= {*space.names}:
        rule = "must name a file with rows, whose columns are factors among"
        raise ValueError(f"{rule}: {', '.join(space.names)}")
    columns = [space.names.index(name) for name in names]
    partial = FactorSpace(tuple(space[name] for name in names))
    listed = [
        [*map(_parse_cell, row, partial, [line] * len(names))]
        for line, row in enumerate(frame.to_numpy().tolist(), start=2)
    ]
    keys = np.unique(make_keys(np.array(listed)))

    def contains(values: np.ndarray) -> np.ndarray:
        asked = make_keys(partial.to_index(values[:, columns]))
        return find_keys(asked, keys) >= 0

    return contains


def _parse_cell(cell: str | float, factor: Factor, line: int) -> int:
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


def _contain(flat: np.ndarray, space: FactorSpace) -> Predicate:
    is_listed = np.zeros(_count(space), bool)
    is_listed[flat] = True

    def contains(values: np.ndarray) -> np.ndarray:
        places = space.to_place(values)
        return is_listed[places] & (places >= 0)

    return contains


def _count(space: FactorSpace) -> int:
    size = math.prod(space.shape)
    if size > MAX_COMBINATIONS:
        raise ValueError(f"must have at most {MAX_COMBINATIONS} combinations")
    return size


@REGIONS.register("wiedemer")
def make_wiedemer(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points off the axes, or off the diagonal (`diagonal:.1`).

    On the axes, at most one group of factors leaves its middle class. On the
    diagonal, groups are at most the width apart, each factor scaled to 0..1.
    """
    match = re.fullmatch(
        r"(?:orthogonal|diagonal:(0?\.\d+))(?::(.*))?", arguments
    )
    if match is None:
        raise ValueError("must be orthogonal, or diagonal:WIDTH as diagonal:.1")
    width, groups = match[1], parse_groups(match[2] or "", space)
    sizes = np.array(space.shape)
    if len(groups) < 2 or math.prod(space.shape) == max(space.shape):
        raise ValueError("of this kind needs two factors")

    def leave_axes(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)
        is_off = (index != sizes // 2) & (index >= 0)
        moved = [is_off[:, group].any(axis=1) for group in groups]
        return np.sum(moved, axis=0) > 1

    def leave_diagonal(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)
        unit = index / np.maximum(sizes - 1, 1)  # [n, F], 0 to 1
        apart = np.ptp(unit[:, groups], axis=1)  # [n, factors of a group]
        is_apart = (apart > float(width) + 1e-9).any(axis=1)
        return is_apart & (index >= 0).all(axis=1)

    if width is None:
        return leave_axes
    if len({len(group) for group in groups}) > 1:
        raise ValueError("must have groups of as many factors each")
    return leave_diagonal


@REGIONS.register("uselis")
def make_uselis(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out all but the (n, k) training set, as `8:3` or `8:3:x,y`.

    The values of each factor are n blocks of neighbors. Training combines
    block i of the first factor with blocks i .. i + k - 1, modulo n, of every
    other one. By default the factors are all with n values or more.
    """
    match = re.fullmatch(r"(\d{1,6}):(\d{1,6})(?::(.+))?", arguments)
    count, most = (int(match[1]), int(match[2])) if match else (0, 0)
    if match is None or not 0 < most < count:
        raise ValueError("must be uselis:N:K, N above K above 0")
    large = [factor.name for factor in space if factor.size >= count]
    names = match[3].split(",") if match[3] else large
    if not 1 < len({*names} & {*large}) == len(names):
        rule = f"must have two factors or more with {count} values or more"
        known = ", ".join(large) or "none"
        raise ValueError(f"{rule}, among which are: {known}")
    columns = [space.names.index(name) for name in names]
    sizes = np.array(space.shape)[columns]

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        blocks = index * count // sizes
        is_far = (blocks[:, 1:] - blocks[:, :1]) % count >= most
        return is_far.any(axis=1) & (index >= 0).all(axis=1)

    return contains


@REGIONS.register("montero")
def make_montero(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a split of Montero et al., as `element`."""
    columns, scales, classes = _find_split("montero", arguments, space)
    # Of each factor the first and last held-out class; all must hold.
    low, high = classes.T

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        # The values below high + 1, as scaled.
        inside = (index >= low * scales) & (index < (high + 1) * scales)
        return inside.all(axis=1)

    return contains


@REGIONS.register("orthotopic")
def make_orthotopic(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out points with more than n factors beyond their thresholds."""
    columns, scales, thresholds = _find_split("orthotopic", arguments, space)

    def contains(values: np.ndarray) -> np.ndarray:
        is_high = space.to_index(values)[:, columns] >= thresholds * scales
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
