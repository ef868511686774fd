"""Views of a dataset: images as contrast, and subsamples of combinations.

A random sample has hardly two combinations that differ in one factor alone, as
maps need them: `subsample_levels` takes all combinations of some levels.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import FactorSpace
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

    Raises:
        ConfigError: If the encoding has no codes or the dataset has no images
            between the values of the grid, no point lies in the region, or
            there are more than `MAX_BETWEEN` points.
    """
    rule = "needs {} between the values of the grid, which {} lacks"
    if encoding == "one_hot":
        raise ConfigError("between", rule.format("codes", encoding), count)
    if not dataset.is_continuous:
        raise ConfigError("between", rule.format("images", dataset.name), count)
    size = max(count, 1)
    space = FactorSpace(
        tuple(
            f if f.categorical else dataclasses.replace(f, size=size)
            for f in dataset.space
        )
    )
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
        # Levels give way to those of a held-out combination.
        middle = held_out[len(held_out) // 2]
        for chosen, level in zip(levels, middle, strict=True):
            chosen[np.abs(chosen - level).argmin()] = level
        rows = _find_rows(index, levels)
    if not math.prod(counts) / 4 <= len(rows) <= limit:  # few of them exist
        rows = sample_rows(every.is_ood, limit)
    return dataset.at_points(every[rows])


def _find_rows(index: np.ndarray, levels: Sequence[np.ndarray]) -> np.ndarray:
    return np.flatnonzero(np.all([*map(np.isin, index.T, levels)], axis=0))
