"""Combinations that an explorer shows: a grid of evenly chosen levels."""

import numpy as np
import pytest

from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import make_splits
from tfcomp.datasets.views import (
    subsample_levels,
    subsample_points,
)


def make(
    sizes: dict[str, int],
    region: str,
    eval_points: int | None = None,
    cells: np.ndarray | None = None,
) -> Dataset:
    space = FactorSpace(
        tuple(Factor(n, size, 0.0, size - 1.0) for n, size in sizes.items())
    )
    found = parse_region(region, space)
    every = space.grid() if cells is None else cells
    train = every[~found.contains(every)]
    splits = make_splits(space, found, train, eval_points, cells)
    return Dataset("own", space, found, splits, lambda f: f, (1, 1, 1))


@pytest.mark.parametrize(
    "region", ["box:x:13-13", "box:x:19-19,y:0-0,z:0-0", "box:x:0-18", "none"]
)
def test_a_grid_of_both_kinds(region: str) -> None:
    data = make({"x": 20, "y": 20, "z": 5}, region, eval_points=500)
    splits = subsample_levels(data, 60).splits
    assert 30 <= len(splits.grid) <= 60
    levels = [np.unique(column) for column in splits.grid.T]
    assert np.prod([len(column) for column in levels]) == len(splits.grid)
    is_ood = data.region.contains(splits.grid)
    np.testing.assert_array_equal(splits.is_ood, is_ood)
    assert is_ood.any() == (region != "none")
    assert not is_ood.all()
    assert not splits.is_complete and not splits.is_streamed
    np.testing.assert_array_equal(splits.existing.factors, data.space.grid())


def test_of_single_images_a_sample() -> None:
    """A grid of levels would hardly have any of them."""
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, 100, (3000, 3)), axis=0).astype("f4")
    data = make({"x": 100, "y": 100, "z": 100}, "box:x:40-60", cells=cells)
    splits = subsample_levels(data, 200).splits
    assert len(splits.grid) == 200
    assert splits.is_ood.sum() == 100
    known = {tuple(row) for row in cells}
    assert all(tuple(row) in known for row in splits.grid)


def test_few_points_of_a_sample_are_among_it() -> None:
    data = make({"x": 9, "y": 9, "z": 9}, "x:4-8,y:4-8,z:4-8", 200)
    few = subsample_points(data, 30)
    splits = few.splits
    assert len(splits.grid) == 30
    assert splits.is_ood.sum() == 15
    shown = {tuple(row) for row in data.splits.grid.tolist()}
    assert {tuple(row) for row in splits.grid.tolist()} <= shown
    assert len(splits.all) == 729
    assert not splits.is_complete
    assert subsample_points(data, 200) is data
    whole = make({"x": 9, "y": 9}, "x:4-8,y:4-8")
    assert subsample_points(whole, 30) is whole
