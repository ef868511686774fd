"""Equal images of a split, against a comparison of all pairs."""

import itertools

import numpy as np
import pytest

import tfcomp
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.notes import describe_copies, describe_limits
from tfcomp.datasets.tables import make_table_dataset

SMALL = ("--dataset=sprites", "--grid_size=12", "--sprite_sizes=3,2,4,3,2")
SPRITES = ("--dataset=sprites", "--grid_size=16", "--sprite_sizes=3,3,4,8,8")
LIMITS = "if what adds up can be read off an image"


def make_sprites(region: str, *flags: str) -> Dataset:
    return make_dataset(parse_config([*flags, f"--region={region}"]))


def make_table(classes: np.ndarray, images: np.ndarray, *flags: str) -> Dataset:
    table = tfcomp.FactorTable(images, classes, names=["shape", "angle"])
    return make_table_dataset(parse_config(["--dataset=table", *flags]), table)


def compare_all(dataset: Dataset) -> tuple[np.ndarray, dict, dict]:
    """Compares all pairs: copies, values that are equal always or somewhere."""
    every, space = dataset.splits.all, dataset.space
    pixels = np.round(255 * dataset.render_array(every.factors))
    index = space.to_index(every.factors)
    train = {
        tuple(row) for row in space.to_index(dataset.splits.train).tolist()
    }
    trained = [n for n in range(len(every)) if tuple(index[n]) in train]
    is_copy = np.zeros(len(every), bool)
    for n in np.flatnonzero(every.is_ood):
        is_copy[n] = any((pixels[n] == pixels[m]).all() for m in trained)
    seen: dict[tuple[str, int, int], list[bool]] = {}
    for n, m in itertools.combinations(trained, 2):
        (differ,) = np.nonzero(index[n] != index[m])
        if len(differ) == 1:
            pair = sorted(index[[n, m], differ[0]].tolist())
            key = (space.names[differ[0]], *pair)
            seen.setdefault(key, []).append((pixels[n] == pixels[m]).all())
    always = {key for key, equal in seen.items() if all(equal)}
    sometimes = {key for key, equal in seen.items() if any(equal)} - always
    return is_copy, always, sometimes


def list_pairs(dataset: Dataset, named: dict[str, list[str]]) -> set:
    """Returns the pairs in groups such as `0 = 180`, as indices of values."""
    pairs = set()
    for name, groups in named.items():
        factor = dataset.space[name]
        texts = [factor.describe(v) for v in factor.values()]
        for group in groups:
            places = [texts.index(text) for text in group.split(" = ")]
            pairs |= {(name, *p) for p in itertools.combinations(places, 2)}
    return pairs


@pytest.mark.parametrize(
    "region",
    [
        "shape:#1-2,orientation:#1-3",
        "shape:#0,orientation:#2|x:#0,scale:#1",
        "wiedemer:orthogonal",
        "random:.3:1",
        "none",
    ],
)
def test_equal_images_are_those_of_all_pairs(region: str) -> None:
    dataset = make_sprites(region, *SMALL)
    is_copy, always, sometimes = compare_all(dataset)
    copies = dataset.copies
    np.testing.assert_array_equal(copies.is_copy, is_copy)
    found = list_pairs(dataset, copies.summary["aliases"])
    some = list_pairs(dataset, copies.summary["partial_aliases"])
    assert found == always
    # A group joins values that are equal to a third one, and may have values
    # that are always equal.
    assert sometimes <= some
    assert all(some & {p for p in sometimes if p[0] == n} for n, *_ in some)


@pytest.mark.parametrize(
    ("region", "num_copies", "num_held_out"),
    [
        ("montero:element", 8, 8),
        ("random_box:.1:21", 128, 192),
        ("uselis:4:1:orientation,x", 768, 1728),
        ("orthotopic:1", 0, 1280),
    ],
)
def test_copies_of_sprites(
    region: str, num_copies: int, num_held_out: int
) -> None:
    dataset = make_sprites(region, *SPRITES)
    assert dataset.copies.is_copy.sum() == num_copies
    assert dataset.splits.is_ood.sum() == num_held_out


def test_orthogonal_sprites_do_not_tell_half_turns_apart() -> None:
    dataset = make_sprites("wiedemer:orthogonal", *SPRITES)
    summary = dataset.copies.summary
    assert len(dataset.splits.train) == 22
    assert summary["num_repeated"] == 4
    assert summary["aliases"] == {"orientation": ["0 = 180", "90 = 270"]}
    text = "do not tell orientation 0 = 180, 90 = 270 apart"
    assert text in describe_limits(summary)
    assert "19 of 2,282 held-out images" in describe_copies(summary)


@pytest.mark.parametrize(
    "flags",
    [
        ("--dataset=gaussian_bumps", "--region=square:6-22"),
        ("--dataset=gaussian_bumps", "--coordinates=continuous"),
        ("--dataset=stripes", "--grid_size=12", "--region=corner:5"),
        ("--dataset=composed", "--grid_size=16", "--num_positions=3"),
    ],
)
def test_nothing_is_said_of_different_images(flags: tuple[str, ...]) -> None:
    region = () if "--region" in flags[-1] else ("--region=random:.2:1",)
    if "continuous" in flags[-1]:
        region = ("--region=square:6-22", "--num_train=100")
    dataset = make_dataset(parse_config([*flags, *region]))
    assert dataset.copies.summary == {}
    assert describe_copies({}) == ""
    assert describe_limits({}) == LIMITS
    assert "ood_new" not in dataset.subsets


def test_copies_and_new_images_of_a_sample(rng: np.random.Generator) -> None:
    classes = np.stack(np.unravel_index(np.arange(60), (3, 20)), axis=1)
    images = rng.integers(0, 256, (60, 5, 4), np.uint8)
    images[40:45] = images[:5]  # five held-out images of the last shape
    flags = ("--region=shape:2,angle:0-9", "--eval_points=24")
    dataset = make_table(classes, images, *flags)
    copied = dataset.splits.all.factors[dataset.copies.is_copy]
    assert copied.tolist() == [[2, angle] for angle in range(5)]
    for data in (dataset, dataset.at_points(dataset.splits.points[:20])):
        grid, is_new = data.splits.grid, data.subsets["ood_new"]
        expected = (grid[:, 0] == 2) & (grid[:, 1] >= 5) & (grid[:, 1] <= 9)
        np.testing.assert_array_equal(is_new, expected)
    assert list(dataset.subsets) == ["id", "ood", "ood_new"]


def test_last_bits_of_black_pixels_make_no_new_image() -> None:
    classes = np.stack(np.unravel_index(np.arange(6), (2, 3)), axis=1)
    images = np.zeros((6, 3, 3), np.float32)
    images[:, 0, 0] = np.arange(6) / 10
    images[3] = images[0]
    images[3, 1, 1] = 1e-17
    images[4] = images[1]
    images[4, 1, 1] = 1e-4
    dataset = make_table(classes, images, "--region=shape:1,angle:0-1")
    assert np.flatnonzero(dataset.copies.is_copy).tolist() == [3]
