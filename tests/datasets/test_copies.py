"""Equal images of a split, against a comparison of all pairs."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tfcomp
from tests.datasets.own_tables import list_rows, make_data
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset
from tfcomp.datasets.notes import describe_copies
from tfcomp.datasets.tables import make_table_dataset

PAIRS = np.argwhere(np.ones((2, 2)))
SMALL = "--dataset=sprites --grid_size=12 --sprite_sizes=3,2,4,3,2"


def make_table(classes: np.ndarray, images: np.ndarray, *flags: str) -> Dataset:
    table = tfcomp.FactorTable(
        images,
        classes,
        names=["shape", "angle"],
    )
    config = parse_config(["--dataset=table", *flags])
    return make_table_dataset(config, table)


def compare_all(dataset: Dataset) -> tuple[np.ndarray, set]:
    """Compares all pairs: copies, and values that are always equal."""
    points = dataset.splits.all
    space = dataset.space
    images = dataset.render_array(points.factors)
    pixels = np.round(255 * images)
    index = space.to_index(points.factors)
    train = space.to_index(dataset.splits.train).tolist()
    trained = [n for n, row in enumerate(index.tolist()) if row in train]

    is_copy = np.zeros(len(points), bool)
    for n in np.flatnonzero(points.is_ood):
        is_equal = (pixels[trained] == pixels[n]).all(axis=(1, 2, 3))
        is_copy[n] = is_equal.any()

    equal = set()
    different = set()
    for n, m in itertools.combinations(trained, 2):
        (columns,) = np.nonzero(index[n] != index[m])
        if len(columns) != 1:
            continue
        (column,) = columns
        low, high = sorted(index[[n, m], column].tolist())
        pair = (space.names[column], low, high)
        if (pixels[n] == pixels[m]).all():
            equal.add(pair)
        else:
            different.add(pair)
    return is_copy, equal - different


def list_pairs(dataset: Dataset, named: dict[str, list[str]]) -> set:
    """Returns the pairs in groups such as `0 = 180`, as indices of values."""
    pairs = set()
    for name, groups in named.items():
        factor = dataset.space[name]
        texts = [factor.describe(value) for value in factor.values()]
        for group in groups:
            places = [texts.index(text) for text in group.split(" = ")]
            for pair in itertools.combinations(places, 2):
                pairs.add((name, *pair))
    return pairs


@pytest.mark.parametrize(
    "region",
    [
        "shape:#1-2,orientation:#1-3",
        "shape:#0,orientation:#2|x:#0,scale:#1",
        "wiedemer:orthogonal",
        "uselis:2:1:orientation,x",
        "random:.3:1",
        "none",
    ],
)
def test_equal_images_are_those_of_all_pairs(region):
    dataset = make_data(f"{SMALL} --region={region}")

    copies = dataset.copies

    is_copy, aliases = compare_all(dataset)
    pairs = list_pairs(dataset, copies.summary["aliases"])
    assert_array_equal(copies.is_copy, is_copy)
    assert pairs == aliases


def test_orthogonal_sprites_do_not_tell_half_turns_apart():
    dataset = make_data(f"{SMALL} --region=wiedemer:orthogonal")
    summary = dataset.copies.summary
    assert len(dataset.splits.train) == 10
    assert summary["num_repeated"] == 4
    assert summary["aliases"] == {"orientation": ["0 = 180", "90 = 270"]}
    assert "0 = 180, 90 = 270" in describe_copies(summary)
    assert "7 of 134" in describe_copies(summary)


@pytest.mark.parametrize(
    "line",
    [
        "--dataset=gaussian_bumps --region=random:.2:1",
        "--coordinates=continuous --region=square:6-22 --num_train=100",
        "--dataset=stripes --grid_size=12 --region=corner:5",
        "--dataset=composed --grid_size=16 --num_positions=3 --region=none",
    ],
)
def test_nothing_is_said_of_different_images(line):
    dataset = make_data(line)
    assert dataset.copies.summary == {}
    assert describe_copies({}) == ""
    assert "ood_new" not in dataset.subsets


def test_copies_and_new_images_of_a_sample(rng):
    classes = np.argwhere(np.ones((3, 20)))
    images = rng.integers(0, 256, (60, 5, 4), np.uint8)
    images[40:45] = images[:5]  # five held-out images of the last shape
    flags = ("--region=shape:2,angle:0-9", "--eval_points=24")

    dataset = make_table(classes, images, *flags)

    points = dataset.splits.all
    copies = points.factors[dataset.copies.is_copy]
    assert list_rows(copies) == {(2, 0), (2, 1), (2, 2), (2, 3), (2, 4)}
    assert list(dataset.subsets) == ["id", "ood", "ood_new"]
    part = dataset.at_points(dataset.splits.points[:20])
    for data in (dataset, part):
        shape, angle = data.splits.grid.T
        is_held_out = (shape == 2) & (angle <= 9)
        is_new = is_held_out & (angle >= 5)
        assert_array_equal(data.subsets["ood_new"], is_new)


def test_noise_does_not_hide_copies(rng):
    """Half of the pixels lie halfway between two gray levels."""
    image = rng.choice([0.0, 0.5, 1.0], (8, 8))
    is_same = rng.random((8, 8)) < 0.5
    other = np.where(is_same, image, 1 - image / 2)
    images = np.stack([image, image, other, other])
    noise = rng.uniform(-1e-6, 1e-6, images.shape)
    noisy_images = np.clip(images + noise, 0, 1)

    noisy = make_table(PAIRS, noisy_images, "--region=angle:1")
    exact = make_table(PAIRS, images, "--region=angle:1")

    assert noisy.copies.summary == exact.copies.summary
    assert noisy.copies.is_copy.sum() == 2
