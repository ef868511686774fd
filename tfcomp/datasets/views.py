"""Views of a dataset: images as contrast, maps, subsamples, points by name.

A random sample has hardly two combinations that differ in one factor alone, as
maps need them: `subsample_levels` takes all combinations of some levels.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.grid_maps import GridMap, arrange_on_grid
from tfcomp.datasets.splits import make_splits, sample_rows

MAX_EXPLORED = 4096  # combinations
MAX_BETWEEN = 10**5  # combinations


def to_contrast(dataset: Dataset, images: Array) -> Array:
    """Subtracts the background or the mean from images.

    Args:
        dataset: Has the background, or the mean training image.
        images: Images, [n, H, W, C].

    Returns:
        Contrast, positive where an object is, [n, pixels].
    """
    sign, reference = _find_origin(dataset)
    count = len(images)
    flat = images.reshape(count, -1)
    contrast = flat - reference
    return sign * contrast


def from_contrast(dataset: Dataset, bright: Array) -> Array:
    """Restores images: the inverse of `to_contrast`.

    Args:
        dataset: The dataset of the images.
        bright: Contrast, [n, pixels].
    """
    sign, reference = _find_origin(dataset)
    images = sign * bright + reference
    return images.reshape(-1, *dataset.image_shape)


def _find_origin(dataset: Dataset) -> tuple[float, float | Array]:
    """Returns the sign of contrast, and the image whose contrast is 0."""
    ground = dataset.ground
    if ground is None:
        reference = dataset.reference.ravel()
        return 1.0, reference.astype(np.float32)
    if ground:
        return -1.0, ground
    return 1.0, ground


def restore(dataset: Dataset, bright: Array) -> Array:
    """Makes contrast visible: scaled to the maximum, or plus the mean image.

    Args:
        dataset: The dataset of the images.
        bright: Contrast, [n, pixels].
    """
    images = bright.reshape(-1, *dataset.image_shape)
    if dataset.ground is None:
        return images + dataset.reference

    sizes = np.abs(images)
    pixel_axes = (1, 2, 3)
    largest = sizes.max(axis=pixel_axes, keepdims=True)
    scales = np.where(largest > 0, largest, 1.0)
    return images / scales


def refine(
    dataset: Dataset,
    encoding: str,
    count: int,
) -> Dataset:
    """Moves the dataset to a finer grid.

    Values are even from the first value of the grid to the last one, as the
    50 x 50 positions of the published code on a grid of 28 x 28.

    Args:
        dataset: Can draw images between the values of its grid.
        encoding: The code of the model.
        count: The number of values of each ordered factor.

    Raises:
        ConfigError: If images or codes are undefined between the values, or
            the grid is too small or too large.
    """
    rule = "needs {} between the values of the grid, which {} lacks"
    if encoding == "one_hot":
        rule = rule.format("codes", encoding)
        raise ConfigError("between", rule, count)
    if not dataset.is_continuous:
        rule = rule.format("images", dataset.name)
        raise ConfigError("between", rule, count)

    space = _refine_space(dataset.space, count)
    try:
        splits = make_splits(
            space,
            dataset.region,
            dataset.splits.train,
            train_all=True,
        )
    except ConfigError:
        rule = "must be large enough for points inside and outside the region"
        raise ConfigError("between", rule, count) from None
    return dataclasses.replace(
        dataset,
        space=space,
        splits=splits,
    )


def _refine_space(
    space: FactorSpace,
    count: int,
) -> FactorSpace:
    """Gives each ordered factor `count` evenly spaced values."""
    if count < 2:
        raise ConfigError("between", "must be at least 2", count)

    factors = []
    for factor in space:
        if factor.categorical:
            factors.append(factor)
            continue
        fine = dataclasses.replace(
            factor,
            size=count,
            levels=(),
            names=(),
        )
        factors.append(fine)

    refined = FactorSpace(tuple(factors))
    num_points = math.prod(refined.shape)
    if num_points > MAX_BETWEEN:
        rule = f"must make at most {MAX_BETWEEN:,} points"
        raise ConfigError("between", rule, count)
    return refined


def make_map(dataset: Dataset, values: Array) -> GridMap:
    """Makes a map of numbers per grid point; NaN at all other points.

    Args:
        dataset: Has the grid, and what is held out of it.
        values: A number for each point, [n].
    """
    numbers = arrange_on_grid(
        dataset.space,
        dataset.splits.grid,
        values,
        empty=np.nan,
    )
    held_out = dataset.held_out
    mask = None
    if held_out.any():
        mask = held_out

    downward = set()
    for name, direction in dataset.vertical.items():
        if direction < 0:
            downward.add(name)
    return GridMap(
        values=numbers,
        factors=dataset.space.factors,
        mask=mask,
        downward=frozenset(downward),
    )


def subsample_maps(dataset: Dataset) -> Dataset:
    """Moves an incomplete dataset to the points of all its maps."""
    if dataset.splits.is_complete or not dataset.planes:
        return dataset

    space = dataset.space
    is_mapped = np.zeros(space.shape, bool)
    for plane in dataset.planes:
        is_mapped[plane.index] = True

    points = dataset.splits.all
    index = space.to_index(points.factors)
    cells = tuple(index.T)
    rows = is_mapped[cells]
    return dataset.at_points(points[rows])


def subsample_points(dataset: Dataset, limit: int) -> Dataset:
    """Moves an incomplete dataset to a sample of its points.

    Args:
        dataset: A dataset of any size.
        limit: The largest number of points.
    """
    splits = dataset.splits
    if splits.is_complete:
        return dataset
    points = splits.points
    if len(points) <= limit:
        return dataset
    rows = sample_rows(points.is_ood, limit)
    return dataset.at_points(points[rows])


def subsample_levels(
    dataset: Dataset,
    limit: int = MAX_EXPLORED,
) -> Dataset:
    """Moves a dataset to all combinations of even levels of its factors.

    Some of them are held out, if any combination is. Where few combinations
    of levels exist, it is a random sample.

    Args:
        dataset: A dataset of any size.
        limit: The largest number of combinations.
    """
    points = dataset.splits.all
    if len(points) <= limit:
        if dataset.splits.existing is None:
            return dataset
        return dataset.at_points(points)

    index = dataset.space.to_index(points.factors)
    is_ood = points.is_ood
    levels = _choose_levels(index, limit)
    rows = _find_rows(index, levels)
    held_out = index[is_ood]
    num_held_out = len(held_out)
    if num_held_out and not is_ood[rows].any():
        # Levels give way to the levels of a held-out combination.
        middle = held_out[num_held_out // 2]
        for number, column in enumerate(levels):
            level = middle[number]
            distances = np.abs(column - level)
            nearest = distances.argmin()
            column[nearest] = level
        rows = _find_rows(index, levels)

    sizes = map(len, levels)
    fewest = math.prod(sizes) / 4
    if not fewest <= len(rows) <= limit:
        rows = sample_rows(is_ood, limit)
    return dataset.at_points(points[rows])


def _choose_levels(index: Array, limit: int) -> list[Array]:
    """Chooses even levels of each column of [n, F].

    A factor keeps all of its levels, or the largest number, common to all
    factors that lose some, with at most `limit` combinations.
    """
    occurring = [np.unique(column) for column in index.T]
    sizes = list(map(len, occurring))
    count = 1
    while count < max(sizes):
        next_sizes = [min(size, count + 1) for size in sizes]
        if math.prod(next_sizes) > limit:
            break
        count += 1

    levels = []
    for column in occurring:
        last = len(column) - 1
        num_levels = min(len(column), count)
        places = np.linspace(0, last, num_levels)
        rounded = places.round()
        rows = rounded.astype(int)
        levels.append(column[rows])
    return levels


def _find_rows(index: Array, levels: Sequence[Array]) -> Array:
    """Finds the rows of [n, F] all of whose levels are listed."""
    count = len(index)
    is_listed = np.ones(count, bool)
    for number, listed in enumerate(levels):
        column = index[:, number]
        is_listed &= np.isin(column, listed)
    return np.flatnonzero(is_listed)


def read_points(
    space: FactorSpace,
    factors: Any = None,
    by_name: Mapping[str, Any] = {},
) -> Array:
    """Reads combinations that a user names.

    Args:
        space: The factors.
        factors: Values [n, F] or [F], or a mapping or pandas table by name of
            values or names of levels, single ones or lists. Single ones go
            with all the others.
        by_name: The same by name, in place of `factors` or beside a mapping.

    Returns:
        Factor values, float32 [n, F].

    Raises:
        ConfigError: If factors are missing, unknown or have other levels.
    """
    if factors is None:
        factors = {}
    names = ", ".join(space.names)
    if hasattr(factors, "keys"):
        given = dict(factors) | dict(by_name)
        table = _join_columns(space, given)
    elif by_name:
        rule = "must be given once, as an array or by name"
        raise ConfigError("factors", rule, sorted(by_name))
    else:
        values = np.asarray(factors, np.float32)
        table = np.atleast_2d(values)

    num_factors = len(space)
    shape = list(table.shape)
    has_columns = table.ndim == 2 and shape[1] == num_factors
    if not has_columns or not len(table):
        rule = f"must be [n, {num_factors}] ({names})"
        raise ConfigError("factors", rule, shape)
    for column, factor in enumerate(space):
        if factor.categorical:
            values = table[:, column]
            _check_levels(factor, values)
    return table


def _check_levels(factor: Factor, values: Array) -> None:
    """Refuses values [n] that are no levels: models take the nearest one."""
    levels = factor.values()
    index = factor.to_index(values)
    is_level = np.isclose(values, levels[index], 1e-4)
    is_absent = np.isnan(values)
    wrong = values[~is_level & ~is_absent]
    if wrong.size:
        names = factor.names or levels.tolist()
        listed = ", ".join(map(str, names))
        first = wrong[0].item()
        raise ConfigError(factor.name, f"must be among {listed}", first)


def _join_columns(
    space: FactorSpace,
    given: Mapping[str, Any],
) -> Array:
    """Joins values or names of levels by factor into a table, [n, F]."""
    if given.keys() != {*space.names}:
        names = ", ".join(space.names)
        rule = f"must be all of {names}"
        raise ConfigError("factors", rule, sorted(given))

    columns = []
    for factor in space:
        items = given[factor.name]
        column = _to_values(factor, items)
        columns.append(column)
    try:
        broadcast = np.broadcast_arrays(*columns)
    except ValueError:
        rule = "must have one length, or be single values"
        lengths = list(map(len, columns))
        raise ConfigError("factors", rule, lengths) from None
    return np.stack(broadcast, axis=1)


def _to_values(factor: Factor, given: Any) -> Array:
    """Converts names of levels and numbers to values, float32 [n]."""
    items = np.asarray(given)
    items = np.atleast_1d(items)
    numbers = factor.values()
    levels = dict(zip(factor.names, numbers, strict=False))
    values = []
    try:
        for item in items:
            name = str(item)
            value = levels.get(name, item)
            if factor.is_named_by_numbers:
                value = levels[name]
            values.append(value)
        return np.array(values, np.float32)
    except (KeyError, TypeError, ValueError):
        names = ", ".join(factor.names) or "numbers"
        rule = f"must be among {names}"
        raise ConfigError(factor.name, rule, given) from None
