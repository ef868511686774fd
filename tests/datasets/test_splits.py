"""Invariants of training tables and splits, for every kind of region."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.datasets.own_tables import list_rows, make_data
from tfcomp.datasets import Dataset, make_splits
from tfcomp.datasets.factors import Factor, FactorSpace, make_pixel_space
from tfcomp.datasets.notes import count_held_out, describe_factors
from tfcomp.datasets.regions import parse_region

REGIONS = "square:3-8 corner:11 box:x:3-8,y:0-4 cross:5-6 gap:y:4-7 diagonal:2"
REGIONS += " none"


@pytest.mark.parametrize(
    "names, high, has_position",
    [
        ("xy", 27, True),
        ("xy", 28, False),  # beyond the image
        ("yx", 27, False),
        ("xyz", 27, False),
        ("x", 27, False),
    ],
)
def test_position_is_declared_by_the_factors(names, high, has_position):
    factors = [Factor(name, 4, 0.0, high) for name in names]
    space = FactorSpace(tuple(factors))
    region = parse_region("none", space)
    splits = make_splits(space, region, space.grid())
    fields = ("mine", space, region, splits, abs, (28, 28, 1))

    assert Dataset(*fields).has_position is has_position
    assert not Dataset(*fields, has_position=False).has_position


@pytest.mark.parametrize(
    "coordinates, num_train",
    [
        ("grid", 0),  # all ID cells
        ("grid", 1),
        ("grid", 20),
        ("continuous", 0),
        ("continuous", 300),
    ],
)
@pytest.mark.parametrize("region", REGIONS.split())
def test_invariants_of_every_table(
    region,
    coordinates,
    num_train,
):
    dataset = make_data(
        f"--grid_size=12 --region={region} --coordinates={coordinates} "
        f"--num_train={num_train} --seed=1"
    )

    splits = dataset.splits
    is_test = splits.points.is_test
    assert_array_equal(splits.grid, dataset.space.grid())
    assert_array_equal(splits.is_ood, dataset.region.contains(splits.grid))
    assert_array_equal(splits.is_id, ~splits.is_ood)
    assert not (is_test & splits.is_ood).any()

    train = splits.train
    assert train.dtype == np.float32
    assert not dataset.region.contains(train).any()
    assert len(list_rows(train)) == len(train)  # without repetition
    assert len(train) == (num_train or splits.is_id.sum())
    assert 0 <= train.min() <= train.max() <= 11

    nearest = np.round(train)
    assert (train != nearest).any() == (coordinates == "continuous")
    untrained = list_rows(splits.grid[splits.is_id]) - list_rows(nearest)
    assert list_rows(splits.grid[is_test]) == untrained


def test_a_note_blames_no_region_for_few_training_images():
    line = "--grid_size=12 --region=square:4-8"
    assert make_data(line).list_notes() == []
    (note,) = make_data(line, "--num_train=4").list_notes()
    assert "training lacks values of x and y" in note


def test_hidden_factors_against_a_loop():
    # Few examples miss some values by chance: that hides them as well.
    line = "--grid_size=12 --region=square:3-8 --num_train=40"
    counts = set()
    for seed in range(20):
        splits = make_data(line, f"--seed={seed}").splits
        held_out = splits.grid[splits.is_ood]
        expected = []
        for column, name in enumerate("xy"):
            trained = set(splits.train[:, column])
            if not set(held_out[:, column]) <= trained:
                expected.append(name)
        assert list(splits.hidden) == expected
        counts.add(len(expected))
    assert len(counts) > 1  # seeds differ


def test_planted_leak():
    space = make_pixel_space(12)
    region = parse_region("square:3-8", space)
    train = make_data("--grid_size=12 --region=square:3-8").splits.train
    leaky = np.concatenate([train, [[2.5, 5.0], [4.5, 5.0]]])
    with pytest.raises(ValueError, match=r"1 training .* \[4.5, 5.0\]"):
        make_splits(space, region, leaky)
    make_splits(space, region, leaky[:-1])


@pytest.mark.parametrize("flags", ["", "--dataset=stripes --num_bumps=64"])
def test_a_control_trains_on_the_region(flags):
    line = f"--grid_size=8 --region=corner:4 --train_all {flags}"
    dataset = make_data(line)
    train = dataset.splits.train
    inside = train[dataset.region.contains(train)]
    assert len(list_rows(inside)) == 16
    assert dataset.splits.is_ood.sum() == 16  # scored as if held out
    assert "--train_all" in str(dataset.list_notes())


@pytest.mark.parametrize(
    "region, counts",
    [
        ("x:2-4,y:1-2", {"x": (3, 0), "y": (2, 0)}),
        ("x:2-4", {"x": (0, 3)}),
        ("random:0.5", {}),
        ("none", {}),
    ],
)
def test_held_out_values_are_counted(region, counts):
    dataset = make_data(f"--grid_size=8 --region={region}")
    assert count_held_out(dataset) == counts
    text = describe_factors(dataset)
    for in_part, altogether in counts.values():
        assert f"{in_part or altogether} held out" in text
    if not counts:
        assert text.startswith("x, y: 8 values")
        assert "held out" not in text
