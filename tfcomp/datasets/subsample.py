"""Combinations to be looked at one by one: all, or a smaller grid of them.

A random sample of many combinations hardly has two that differ in one factor
alone, so that no map could be drawn of it. Therefore levels are chosen: as many
of every factor, if it has them, evenly among those that occur in held-out
combinations and evenly among the others. All that exists at these is shown.
"""

import math
from collections.abc import Sequence

import numpy as np

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.splits import Points, sample_rows

MAX_EXPLORED = 4096  # combinations


def subsample_levels(dataset: Dataset, limit: int = MAX_EXPLORED) -> Dataset:
    """The data with at most `limit` combinations as its grid.

    Itself if its grid is all that exists. If few exist at chosen levels, as of
    a table of single images, a sample, half of it held out.
    """
    every = dataset.splits.all
    if len(every) > limit:
        return dataset.at_points(every[_choose_rows(dataset, every, limit)])
    return (
        dataset if dataset.splits.existing is None else dataset.at_points(every)
    )


def subsample_points(dataset: Dataset, limit: int) -> Dataset:
    """The data, unless it has a whole grid, with at most `limit` points."""
    splits = dataset.splits
    if splits.is_complete or len(splits.points) <= limit:
        return dataset
    return dataset.at_points(splits.points[sample_rows(splits.is_ood, limit)])


def count_levels(sizes: Sequence[int], limit: int) -> list[int]:
    """How many levels of each factor, about as many, make at most `limit`."""
    counts = [1] * len(sizes)
    growing = list(range(len(sizes)))
    while growing:
        least = min(growing, key=lambda i: counts[i])
        grown = counts.copy()
        grown[least] += 1
        if grown[least] > sizes[least] or math.prod(grown) > limit:
            growing.remove(least)
        else:
            counts = grown
    return counts


def _choose_rows(dataset: Dataset, every: Points, limit: int) -> np.ndarray:
    index = dataset.space.to_index(every.factors)
    held_out = index[every.is_ood]
    known = [np.unique(column) for column in index.T]
    counts = count_levels([len(levels) for levels in known], limit)
    columns = zip(known, held_out.T, counts, strict=True)
    levels = [_choose_levels(*column) for column in columns]
    rows = _find_rows(index, levels)
    if len(held_out) and not every.is_ood[rows].any():
        # Levels give way to those of a held-out combination.
        middle = held_out[len(held_out) // 2]
        for chosen, level in zip(levels, middle, strict=True):
            chosen[np.abs(chosen - level).argmin()] = level
        rows = _find_rows(index, levels)
    if len(rows) < limit // 4:
        return sample_rows(every.is_ood, limit)
    return rows


def _choose_levels(
    known: np.ndarray, held_out: np.ndarray, count: int
) -> np.ndarray:
    """Evenly, some of those that are held out somewhere, and of the others."""
    of_ood = np.unique(held_out)
    others = np.setdiff1d(known, of_ood)
    if count < 2 or not len(others) or not len(of_ood):
        return _spread(known, count)
    share = round(count * len(of_ood) / len(known))
    share = int(np.clip(share, 1, count - 1))
    share = min(max(share, count - len(others)), len(of_ood))
    return np.union1d(_spread(of_ood, share), _spread(others, count - share))


def _spread(levels: np.ndarray, count: int) -> np.ndarray:
    if count == 1:
        return levels[[(len(levels) - 1) // 2]]
    return levels[np.round(np.linspace(0, len(levels) - 1, count)).astype(int)]


def _find_rows(index: np.ndarray, levels: Sequence[np.ndarray]) -> np.ndarray:
    return np.flatnonzero(np.all([*map(np.isin, index.T, levels)], axis=0))
