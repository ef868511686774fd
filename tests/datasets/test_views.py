"""Labelled maps, planes and curves; combinations that an explorer shows."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.datasets.own_tables import (
    list_rows,
    make_data,
    make_named,
    make_space,
)
from tests.own_factors import TILES
from tfcomp.config.errors import ConfigError
from tfcomp.datasets import Dataset, grid_maps, views
from tfcomp.datasets.factors import Factor, FactorSpace, make_categories
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import make_splits

SHAPE = TILES.shape
INDEX = TILES.to_index(TILES.grid())


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return make_data(
        "rotated_mnist --digit_source=stand_in --digit_classes=1,4 "
        "--num_angles=21 --region=box:angle:100-200,digit:4"
    )


def test_a_finer_grid_has_new_values_and_the_same_region(digits):
    splits = views.refine(digits, "bump", 36).splits

    digit, angle = splits.grid.T
    assert sorted({*angle.tolist()}) == list(range(0, 360, 10))
    held_out = (digit == 4) & (angle >= 100) & (angle <= 200)
    assert_array_equal(splits.is_ood, held_out)
    assert held_out.sum() == 11
    assert len(splits.grid) == 72


def test_codes_and_images_that_have_no_finer_grid(digits):
    discrete = dataclasses.replace(digits, is_continuous=False)
    with pytest.raises(ConfigError, match="codes .* one_hot"):
        views.refine(digits, "one_hot", 36)
    with pytest.raises(ConfigError, match="images .* rotated_digits"):
        views.refine(discrete, "bump", 36)


def test_maps_carry_their_factors(rng):
    values = rng.random(SHAPE)
    mask = values > 0.9
    grid_map = grid_maps.GridMap(values, TILES.factors, mask)
    plane, *_ = grid_maps.list_planes(TILES.factors, INDEX, mask.ravel())

    part = grid_map.cut(plane)

    assert plane.name == "x_size"
    assert plane.held.startswith("phase ")
    assert ", color " in plane.held
    assert part.factors == TILES.factors[:2]
    assert_array_equal(part.values, values[plane.index])
    assert_array_equal(part.mask, mask[plane.index])


ANGLE = Factor(
    "angle",
    6,
    0.0,
    360.0,
    periodic=True,
)
DIGITS = make_categories("digit", [4, 0])


@pytest.mark.parametrize("factors", [(DIGITS, ANGLE), (ANGLE, DIGITS)])
def test_a_curve_for_every_name(factors):
    space = FactorSpace(factors)
    column = space.names.index("angle")

    curves = grid_maps.list_curves(space)

    labels = [curve.label for curve in curves]
    assert labels == ["digit 0", "digit 4"]
    for curve, digit in zip(curves, (0, 4), strict=True):
        points = space.grid()[curve.rows]
        assert_array_equal(points[:, column], ANGLE.values())
        assert set(points[:, 1 - column]) == {digit}


def test_one_factor_is_one_curve_with_an_interval():
    inside = np.array([0, 0, 1, 1, 1, 0])
    across = np.roll(inside, 3)
    nowhere = np.zeros(6)

    (curve,) = grid_maps.list_curves(FactorSpace((ANGLE,)))

    interval = grid_maps.find_interval(curve, inside)
    assert curve.label == "angle"
    assert curve.rows.tolist() == list(range(6))
    assert interval == (120, 240)
    assert grid_maps.find_interval(curve, across) is None
    assert grid_maps.find_interval(curve, nowhere) is None


def make(
    sizes: dict[str, int],
    region: str,
    eval_points: int | None = None,
    cells: np.ndarray | None = None,
) -> Dataset:
    space = make_space(**sizes)
    held_out = parse_region(region, space)
    points = space.grid()
    if cells is not None:
        points = cells
    train = points[~held_out.contains(points)]
    splits = make_splits(
        space,
        held_out,
        train,
        eval_points,
        cells,
    )
    return Dataset(
        "own",
        space,
        held_out,
        splits,
        abs,
        (1, 1, 1),
    )


@pytest.mark.parametrize(
    "region",
    ["box:x:13-13", "box:x:19-19,y:0-0,z:0-0", "box:x:0-18", "none"],
)
def test_a_grid_of_both_kinds(region):
    data = make(
        {"x": 20, "y": 20, "z": 5},
        region,
        eval_points=500,
    )

    splits = views.subsample_levels(data, 60).splits

    grid = splits.grid
    num_levels = [len(np.unique(column)) for column in grid.T]
    is_ood = data.region.contains(grid)
    assert 20 <= len(grid) <= 60
    assert np.prod(num_levels) == len(grid)
    assert_array_equal(splits.is_ood, is_ood)
    assert is_ood.any() == (region != "none")
    assert not is_ood.all()
    assert not splits.is_complete
    assert not splits.is_streamed
    assert_array_equal(splits.existing.factors, data.space.grid())


def test_of_single_images_a_sample(rng):
    """A grid of levels would hardly have any of them."""
    places = rng.integers(0, 100, (3000, 3))
    cells = np.unique(places, axis=0).astype("f4")
    data = make(
        {"x": 100, "y": 100, "z": 100},
        "box:x:40-60",
        cells=cells,
    )

    splits = views.subsample_levels(data, 200).splits

    assert len(splits.grid) == 200
    assert splits.is_ood.sum() == 100
    assert list_rows(splits.grid) <= list_rows(cells)


def test_few_points_of_a_sample_are_among_it():
    data = make({"x": 9, "y": 9, "z": 9}, "x:4-8,y:4-8,z:4-8", 200)

    splits = views.subsample_points(data, 30).splits

    assert len(splits.grid) == 30
    assert splits.is_ood.sum() == 15
    assert list_rows(splits.grid) <= list_rows(data.splits.grid)
    assert len(splits.all) == 729
    assert not splits.is_complete
    assert views.subsample_points(data, 200) is data
    complete = make({"x": 9, "y": 9}, "x:4-8,y:4-8")
    assert views.subsample_points(complete, 30) is complete


def test_levels_by_names_that_are_numbers():
    space = FactorSpace((make_named("n", "10", "20", "30"),))

    points = views.read_points(space, by_name={"n": [30, "10"]})

    assert points.tolist() == [[2], [0]]
    with pytest.raises(ConfigError):
        views.read_points(space, by_name={"n": 1})
