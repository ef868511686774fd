"""Regions that list their combinations: a random share, a table in a file."""

import csv
import math
import os
from pathlib import Path

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import Predicate

MAX_COMBINATIONS = 10**8


def make_random(arguments: str, space: FactorSpace) -> Predicate:
    """Returns a random share of all combinations, as `0.2` or `0.2:7`."""
    fraction, number = _parse_share("random", arguments)
    size = _count(space)
    chosen = np.random.default_rng([number, size]).permutation(size)
    return _contain(chosen[: max(1, round(fraction * size))], space)


def make_random_box(arguments: str, space: FactorSpace) -> Predicate:
    """Returns random intervals of two factors or more, as `0.1` or `0.1:3`.

    They leave out a value of each of these factors, so that training sees all
    values. Intervals of periodic factors may wrap.
    """
    share, number = _parse_share("random_box", arguments)
    sizes = np.array(space.shape)
    varied = np.flatnonzero(sizes > 1)
    if len(varied) < 2:
        raise ValueError("of this kind needs two factors")
    rng = np.random.default_rng([number, *sizes])
    count = rng.integers(2, len(varied) + 1)
    columns = np.sort(rng.choice(varied, count, replace=False))
    width = np.round(sizes[columns] * share ** (1 / count)).astype(int)
    width = np.clip(width, 1, sizes[columns] - 1)
    wraps = np.array([space.factors[column].periodic for column in columns])
    starts = np.where(wraps, sizes[columns], sizes[columns] - width + 1)
    first = rng.integers(0, starts)

    def contains(values: np.ndarray) -> np.ndarray:
        index = space.to_index(values)[:, columns]
        inside = (index - first) % sizes[columns] < width
        return (inside & (index >= 0)).all(axis=1)

    return contains


def _parse_share(kind: str, arguments: str) -> tuple[float, int]:
    share, _, seed = arguments.partition(":")
    try:
        fraction, number = float(share), int(seed or 0)
    except ValueError:
        fraction, number = 0.0, 0
    if not 0 < fraction < 1 or number < 0:
        raise ValueError(f"must be {kind}:SHARE or {kind}:SHARE:SEED, 0 to 1")
    return fraction, number


def make_file(arguments: str, space: FactorSpace) -> Predicate:
    """Returns the combinations in the rows of a CSV file: values or names."""
    columns, rows = _read_rows(arguments)
    if not rows or not 0 < len({*columns} & {*space.names}) == len(columns):
        known = ", ".join(space.names)
        rule = "must name a file with rows, whose columns are factors among"
        raise ValueError(f"{rule}: {known}")
    partial = FactorSpace(tuple(space[name] for name in columns))
    listed = []
    for line, row in rows:
        if len(row) != len(columns):
            rule = f"must name a file with {len(columns)} cells in each row"
            raise ValueError(f"{rule}; line {line} has {len(row)}")
        listed.append([*map(_parse_cell, row, partial, [line] * len(row))])
    flat = np.ravel_multi_index(np.transpose(listed), partial.shape)
    contains = _contain(flat, partial)
    places = [space.names.index(name) for name in columns]
    return lambda values: contains(values[:, places])


def _read_rows(name: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Returns the head of a CSV file and its other rows, with their lines."""
    path = Path(os.path.expanduser(name))
    try:
        if not path.is_file():  # a device would be read for ever
            raise OSError(f"{path} is no file")
        with path.open(newline="", encoding="utf-8-sig") as file:
            head, *rows = [[c.strip() for c in row] for row in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        rule = f"must name a readable CSV file with a header ({error})"
        raise ConfigError("region", rule, f"file:{name}") from error
    return head, [(n, row) for n, row in enumerate(rows, start=2) if row]


def _parse_cell(text: str, factor: Factor, line: int) -> int:
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
