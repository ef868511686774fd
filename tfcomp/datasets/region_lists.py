"""Regions that list their combinations: a random share, a table in a file."""

import math
import re
from pathlib import Path

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import Predicate

MAX_COMBINATIONS = 10**8


def make_random(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out a random share of all combinations, as `0.2` or `0.2:7`."""
    share, seed = _parse_share("random", arguments)
    size = _count(space)
    chosen = np.random.default_rng([seed, size]).permutation(size)
    return _contain(chosen[: max(1, round(share * size))], space)


def make_random_box(arguments: str, space: FactorSpace) -> Predicate:
    """Holds out random intervals of two factors or more, as `0.1` or `0.1:3`.

    They leave out a value of each of these factors, so that training sees all
    values. Intervals of periodic factors may wrap.
    """
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
    flat = np.ravel_multi_index(np.transpose(listed), partial.shape)
    contains = _contain(flat, partial)
    return lambda values: contains(values[:, columns])


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
