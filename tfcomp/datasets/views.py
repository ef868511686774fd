"""Views of a dataset: images as contrast, maps, subsamples, points by name.

A random sample has hardly two combinations that differ in one factor alone, as
maps need them: `subsample_levels` takes all combinations of some levels.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfcomp.config.errors import ConfigError, suggest
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.grid_maps import GridMap, spread
from tfcomp.datasets.splits import make_splits, sample_rows

MAX_EXPLORED = 4096  # combinations
MAX_BETWEEN = 10**5  # combinations


def to_contrast(dataset: Dataset, images: np.ndarray) -> np.ndarray:
    """Returns images as contrast to the background or the mean, [n, pixels]."""
    sign, reference = _find_origin(dataset)
    return sign * (images.reshape(len(images), -1) - reference)


def from_contrast(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """Returns images [n, H, W, C], the inverse of `to_contrast`."""
    sign, reference = _find_origin(dataset)
    return (sign * bright + reference).reshape(-1, *dataset.image_shape)


def _find_origin(dataset: Dataset) -> tuple[float, float | np.ndarray]:
    ground = dataset.ground
    if ground is not None:
        return -1.0 if ground else 1.0, ground
    return 1.0, dataset.reference.ravel().astype(np.float32)


def restore(dataset: Dataset, bright: np.ndarray) -> np.ndarray:
    """Returns visible images: scaled to the maximum, or plus the mean image."""
    images = bright.reshape(-1, *dataset.image_shape)
    if dataset.ground is None:
        return images + dataset.reference
    largest = np.abs(images).max(axis=(1, 2, 3), keepdims=True)
    return images / np.where(largest > 0, largest, 1.0)


def refine(dataset: Dataset, encoding: str, count: int) -> Dataset:
    """Returns the dataset at `count` even values of each ordered factor.

    They go from the first value of the grid to the last one, as the 50 x 50
    positions of the published code on a grid of 28 x 28.
    """
    rule = "needs {} between the values of the grid, which {} lacks"
    if encoding == "one_hot":
        raise ConfigError("between", rule.format("codes", encoding), count)
    if not dataset.is_continuous:
        raise ConfigError("between", rule.format("images", dataset.name), count)
    even: dict[str, Any] = {"size": max(count, 1), "levels": (), "names": ()}
    finer = (
        f if f.categorical else dataclasses.replace(f, **even)
        for f in dataset.space
    )
    space = FactorSpace(tuple(finer))
    if count < 2 or math.prod(space.shape) > MAX_BETWEEN:
        rule = "must be at least 2, and make at most "
        raise ConfigError("between", f"{rule}{MAX_BETWEEN:,} points", count)
    try:
        splits = make_splits(
            space, dataset.region, dataset.splits.train, train_all=True
        )
    except ConfigError:
        rule = "must be large enough for points inside and outside the region"
        raise ConfigError("between", rule, count) from None
    return dataclasses.replace(dataset, space=space, splits=splits)


def make_map(dataset: Dataset, values: np.ndarray) -> GridMap:
    """Returns numbers per grid point [n] as a map; NaN at all other points."""
    numbers = spread(dataset.space, dataset.splits.grid, values, np.nan)
    mask = dataset.held_out if dataset.held_out.any() else None
    downward = {name for name, up in dataset.vertical.items() if up < 0}
    return GridMap(numbers, dataset.space.factors, mask, frozenset(downward))


def subsample_maps(dataset: Dataset) -> Dataset:
    """Returns an incomplete dataset at the points of all its maps."""
    if dataset.splits.is_complete or not dataset.planes:
        return dataset
    every, space = dataset.splits.all, dataset.space
    is_shown = np.zeros(space.shape, bool)
    for plane in dataset.planes:
        is_shown[plane.index] = True
    rows = is_shown[tuple(space.to_index(every.factors).T)]
    return dataset.at_points(every[rows])


def subsample_points(dataset: Dataset, limit: int) -> Dataset:
    """Returns an incomplete dataset at `limit` of its points at most."""
    splits = dataset.splits
    if splits.is_complete or len(splits.points) <= limit:
        return dataset
    return dataset.at_points(splits.points[sample_rows(splits.is_ood, limit)])


def subsample_levels(dataset: Dataset, limit: int = MAX_EXPLORED) -> Dataset:
    """Returns the dataset at even levels, or at a sample if few exist."""
    every, is_all = dataset.splits.all, dataset.splits.existing is None
    if len(every) <= limit:
        return dataset if is_all else dataset.at_points(every)
    index = dataset.space.to_index(every.factors)
    known = [np.unique(column) for column in index.T]
    counts = [1] * len(known)
    for most in range(1, max(map(len, known)) + 1):
        more = [min(len(column), most) for column in known]
        counts = more if math.prod(more) <= limit else counts
    levels = [
        column[np.linspace(0, len(column) - 1, count).round().astype(int)]
        for column, count in zip(known, counts, strict=True)
    ]
    rows = _find_rows(index, levels)
    held_out = index[every.is_ood]
    if len(held_out) and not every.is_ood[rows].any():
        # Levels give way to the levels of a held-out combination.
        middle = held_out[len(held_out) // 2]
        for chosen, level in zip(levels, middle, strict=True):
            chosen[np.abs(chosen - level).argmin()] = level
        rows = _find_rows(index, levels)
    if not math.prod(counts) / 4 <= len(rows) <= limit:  # few of them exist
        rows = sample_rows(every.is_ood, limit)
    return dataset.at_points(every[rows])


def _find_rows(index: np.ndarray, levels: Sequence[np.ndarray]) -> np.ndarray:
    return np.flatnonzero(np.all([*map(np.isin, index.T, levels)], axis=0))


def read_points(
    space: FactorSpace, factors: Any = None, by_name: Mapping[str, Any] = {}
) -> np.ndarray:
    """Returns a table of factor values, float32 [n, F].

    Factors are values [n, F] or [F], or a mapping or pandas table by name: a
    number, the name of a level, or a list of them. Single values go with all.
    """
    names = ", ".join(space.names)
    if factors is None or hasattr(factors, "keys"):
        by_name = {**dict(() if factors is None else factors), **by_name}
    elif by_name:
        rule = "must be given once, as an array or by name"
        raise ConfigError("factors", rule, sorted(by_name))
    else:
        table = np.atleast_2d(np.asarray(factors, np.float32))
        if table.ndim != 2 or table.shape[1] != len(space):
            rule = f"must be [n, {len(space)}] ({names})"
            raise ConfigError("factors", rule, list(np.shape(factors)))
        return _check_points(space, table)
    unknown = [name for name in by_name if name not in space.names]
    if unknown or len(by_name) < len(space):
        hint = suggest(unknown[0], space.names) if unknown else ""
        rule = f"must be all of {names}{hint}"
        raise ConfigError("factors", rule, sorted(by_name))
    columns = [_to_values(factor, by_name[factor.name]) for factor in space]
    try:
        table = np.stack(np.broadcast_arrays(*columns), axis=1)
    except ValueError:
        rule = "must have one length, or be single values"
        raise ConfigError("factors", rule, [*map(len, columns)]) from None
    return _check_points(space, table)


def _check_points(space: FactorSpace, table: np.ndarray) -> np.ndarray:
    if not len(table):
        rule = "must have at least one combination"
        raise ConfigError("factors", rule, list(table.shape))
    for factor, values in zip(space, table.T, strict=True):
        nearest = factor.values()[factor.to_index(values)]
        is_level = np.isclose(values, nearest, 1e-4) | np.isnan(values)
        if factor.categorical and not is_level.all():  # models take the nearest
            known = factor.names or factor.values().tolist()
            rule = f"must be among {', '.join(map(str, known))}"
            raise ConfigError(factor.name, rule, values[~is_level][0].item())
    return table


def _to_values(factor: Factor, given: Any) -> np.ndarray:
    names = [*factor.names, *factor.named.tolist()]  # "1", and 1
    levels = dict(zip(names, 2 * factor.values().tolist(), strict=False))
    items = np.atleast_1d(np.asarray(given)).tolist()
    known = levels if len(factor.named) else {x: x for x in items} | levels
    try:
        return np.array([known[item] for item in items], np.float32)
    except (KeyError, TypeError, ValueError):
        rule = f"must be among {', '.join(factor.names) or 'numbers'}"
        raise ConfigError(factor.name, rule, given) from None
