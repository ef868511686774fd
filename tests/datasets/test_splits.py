"""Invariants of training tables and splits, for every kind of region."""

import numpy as np
import pytest

from tfcomp.config.run_config import (
    DataConfig,
    RunConfig,
    TrainingConfig,
)
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import (
    Dataset,
    make_dataset,
    make_splits,
)
from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    make_pixel_space,
)
from tfcomp.datasets.notes import (
    count_held_out,
    describe_factors,
    list_notes,
)
from tfcomp.datasets.regions import parse_region

REGIONS = "square:3-8 corner:7 corner:11 box:x:3-8,y:0-4 box:y:2-4 cross:5-6"
REGIONS += " gap:x:4-7 gap:y:4-7 diagonal:2 none"
# Coordinates -> sizes of the table; 0 stands for the number of ID cells.
NUM_TRAIN = {"grid": (0, 1, 20), "continuous": (0, 1, 300)}


def make(region: str, seed: int = 0, **data) -> Dataset:
    return make_dataset(
        RunConfig(
            data=DataConfig(region=region, grid_size=12, **data),
            training=TrainingConfig(seed=seed),
        )
    )


@pytest.mark.parametrize(
    ("factors", "has_position"),
    [
        ([("x", 27), ("y", 27)], True),
        ([("x", 28), ("y", 27)], False),  # beyond the image
        ([("y", 27), ("x", 27)], False),
        ([("radius", 9), ("phase", 9)], False),
        ([("x", 27), ("y", 27), ("shape", 3)], False),
        ([("x", 27)], False),
    ],
)
def test_position_is_declared_by_the_factors(
    factors: list[tuple[str, int]], has_position: bool
) -> None:
    space = FactorSpace(tuple(Factor(n, 4, 0.0, high) for n, high in factors))
    region = parse_region("none", space)
    splits = make_splits(space, region, space.grid())
    parts = (
        "mine",
        space,
        region,
        splits,
        abs,
        (28, 28, 1),
    )
    assert Dataset(*parts).has_position is has_position
    assert not Dataset(*parts, has_position=False).has_position


def as_rows(table: np.ndarray) -> set[tuple[float, ...]]:
    return set(map(tuple, table.tolist()))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("coordinates", "num_train"),
    [(kind, count) for kind in NUM_TRAIN for count in NUM_TRAIN[kind]],
)
@pytest.mark.parametrize("region", REGIONS.split())
def test_invariants_of_every_table(
    region: str, coordinates: str, num_train: int, seed: int
) -> None:
    dataset = make(
        region,
        seed,
        num_train=num_train,
        coordinates=coordinates,
    )
    splits, train = dataset.splits, dataset.splits.train
    np.testing.assert_array_equal(splits.is_id, ~splits.is_ood)
    assert not (splits.points.is_test & splits.is_ood).any()
    np.testing.assert_array_equal(splits.grid, dataset.space.grid())
    np.testing.assert_array_equal(
        splits.is_ood, dataset.region.contains(splits.grid)
    )
    assert not dataset.region.contains(train).any()
    assert len(as_rows(train)) == len(train)  # without repetition
    assert len(train) == (num_train or splits.is_id.sum())
    assert train.dtype == np.float32
    assert 0 <= train.min() <= train.max() <= 11
    nearest = np.round(train)
    assert (train != nearest).any() == (coordinates == "continuous")
    test = as_rows(splits.grid[splits.points.is_test])
    assert test == as_rows(splits.grid[splits.is_id]) - as_rows(nearest)


def test_a_note_blames_no_region_for_few_training_images() -> None:
    flags = ["--grid_size=12", "--region=square:4-8"]
    assert list_notes(make_dataset(parse_config(flags))) == []
    (note,) = list_notes(make_dataset(parse_config([*flags, "--num_train=4"])))
    assert note.startswith(
        "not compositional: training lacks values of x and y"
    )


def test_hidden_factors_against_a_loop() -> None:
    # Few examples miss some values by chance: that hides them as well.
    for seed in range(20):
        splits = make("square:3-8", num_train=12, seed=seed).splits
        ood = splits.grid[splits.is_ood]
        expected = tuple(
            name
            for column, name in enumerate("xy")
            if not set(ood[:, column]) <= set(splits.train[:, column])
        )
        assert splits.hidden == expected
    assert expected  # such seeds exist


def test_planted_leak() -> None:
    space = make_pixel_space(12)
    region = parse_region("square:3-8", space)
    train = make("square:3-8").splits.train
    leaky = np.concatenate([train, [[2.5, 5.0], [4.5, 5.0]]])
    with pytest.raises(ValueError, match=r"1 training .* \[4.5, 5.0\]"):
        make_splits(space, region, leaky)
    make_splits(space, region, leaky[:-1])


@pytest.mark.parametrize("flags", [[], ["--dataset=stripes", "--num_bumps=64"]])
def test_a_control_trains_on_the_region(
    flags: list[str],
) -> None:
    flags = [*flags, "--grid_size=8", "--region=corner:4"]
    dataset = make_dataset(parse_config([*flags, "--train_all"]))
    inside = dataset.region.contains(dataset.splits.train)
    assert np.unique(dataset.splits.train[inside], axis=0).shape[0] == 16
    assert dataset.splits.is_ood.sum() == 16  # scored as if held out
    assert any("--train_all" in line for line in list_notes(dataset))
    if not flags[0].endswith("stripes"):
        plain = make_dataset(parse_config(flags))
        assert not plain.region.contains(plain.splits.train).any()


@pytest.mark.parametrize(
    ("region", "counts"),
    [
        ("x:2-4,y:1-2", {"x": (3, 0), "y": (2, 0)}),
        ("x:2-4", {"x": (0, 3)}),
        ("random:0.5", {}),
        ("none", {}),
    ],
)
def test_held_out_values_are_counted(
    region: str, counts: dict[str, tuple[int, int]]
) -> None:
    flags = ["--grid_size=8", f"--region={region}"]
    dataset = make_dataset(parse_config(flags))
    assert count_held_out(dataset) == counts
    text = describe_factors(dataset)
    for in_part, altogether in counts.values():
        assert f"{in_part or altogether} held out" in text
    if not counts:
        assert text.startswith("x, y: 8 values") and "held out" not in text
