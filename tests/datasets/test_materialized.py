"""Examples on disk: the same bits as rendering, and clear refusals."""

import dataclasses
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds
import yaml

from tfcomp.config import own_settings
from tfcomp.config.errors import RunError
from tfcomp.config.own_settings import OwnSettings
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset, materialized
from tfcomp.datasets.batches import make_batches
from tfcomp.datasets.data_card import count_bytes, hash_images
from tfcomp.datasets.materialized import (
    attach_examples,
    load_split,
    materialize,
)

BUMPS = ("--grid_size=8", "--region=square:3-4", "--polarity=bright")
SMALL = ("--flagfile=smoke.flags", "--region=corner:7")
KINDS = {
    "grid": SMALL,
    "num_train": (*SMALL, "--num_train=40"),
    "continuous": (*SMALL, "--coordinates=continuous", "--num_train=40"),
    "stripes_and_bumps": (*SMALL, "--dataset=stripes", "--num_bumps=9"),
    "sprites": (
        "--flagfile=sprites.flags",
        *("--sprite_sizes=2,1,3,3,3,2", "--grid_size=16"),
        "--region=random:0.2",
    ),
    "digits": (
        *("--flagfile=rotated_mnist.flags", "--digit_source=stand_in"),
        *("--num_angles=37", "--digit_classes=4,0,1"),
        "--region=box:digit:4-4,angle:160-200",
    ),
}


def parse(*flags: str) -> RunConfig:
    return parse_config(list(flags))


@pytest.fixture
def stored(tmp_path: Path) -> RunConfig:
    """A run that reads its examples below `tmp_path`; none are there yet."""
    return parse(*SMALL, f"--examples_dir={tmp_path}")


def attach(config: RunConfig, **changes: np.ndarray) -> Dataset:
    """The dataset with the examples on disk, or with other splits."""
    dataset = make_dataset(config)
    splits = dataclasses.replace(dataset.splits, **changes)
    return attach_examples(config, dataclasses.replace(dataset, splits=splits))


def read_batches(config: RunConfig) -> list[tuple]:
    dataset = attach(config)
    assert (dataset.draw_train is None) == (not config.data.examples_dir)
    batches = make_batches(dataset, 16, seed=3, first_step=2, num_steps=9)
    return list(batches.as_numpy_iterator())


@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_the_same_bits(kind: str, tmp_path: Path) -> None:
    stored = parse(*KINDS[kind], f"--examples_dir={tmp_path}")
    materialize(stored, tmp_path)
    rendered = read_batches(parse(*KINDS[kind]))
    for one, two in zip(read_batches(stored), rendered, strict=True):
        np.testing.assert_array_equal(one[0], two[0])
        assert one[1].tobytes() == two[1].tobytes()


def test_held_out_examples_are_there_and_written_once(
    stored: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make_dataset(stored)
    # Built once: the dataset of a run is passed on.
    monkeypatch.setattr(materialized, "make_dataset", None)
    folder = materialize(stored, tmp_path, dataset)
    assert attach_examples(stored, dataset).draw_train is not None
    found = load_split(stored, tmp_path, "ood", dataset)
    expected = dataset.splits.grid[dataset.splits.is_ood]
    np.testing.assert_array_equal(found.factors, expected)
    images = dataset.render_array(expected)
    np.testing.assert_array_equal(found.images, images)
    before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    assert materialize(stored, tmp_path) == folder
    assert {p: p.stat().st_mtime_ns for p in folder.iterdir()} == before


def test_examples_of_other_code_are_not_read(
    stored: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = materialize(stored, tmp_path)
    monkeypatch.setattr(materialized, "compute_code_version", str.upper)
    with pytest.raises(RunError, match="no examples of this run"):
        attach(stored)
    assert materialize(stored, tmp_path) != old
    assert attach(stored).draw_train is not None
    # Nor of another value of a plugin's setting, which may change images.
    other = dataclasses.replace(stored, own=OwnSettings(petals=7))
    with pytest.raises(RunError, match="no examples of this run"):
        attach(other)


def test_other_and_damaged_examples_are_refused(
    stored: RunConfig, tmp_path: Path
) -> None:
    folder = materialize(stored, tmp_path)
    moved = make_dataset(stored).splits.train.copy()
    moved[5, 1] = np.nextafter(moved[5, 1], np.float32(9))
    for table in (moved, moved[:-1]):
        with pytest.raises(RunError, match="has other examples than") as caught:
            attach(stored, train=table)
        assert "\n" not in str(caught.value)
    records = next(folder.glob("*train*"))
    records.write_bytes(records.read_bytes()[:1000])
    with pytest.raises(RunError, match="cannot be .* remove it") as caught:
        attach(stored)
    assert "\n" not in str(caught.value)


# Cards


def test_the_hash_is_that_of_rounded_pixels_in_the_order_of_the_grid() -> None:
    dataset = make_dataset(parse(*BUMPS, "--sigma=1.5"))
    grid = [(x, y) for x in range(8) for y in range(8)]  # y is faster
    images = np.zeros((64, 8, 8))
    for image, (x, y) in zip(images, grid, strict=True):
        for row in range(8):
            for column in range(8):
                distance = (row - y) ** 2 + (column - x) ** 2
                image[row, column] = np.exp(-distance / (2 * 1.5**2))
    pixels = np.floor(255 * images + 0.5).astype(np.uint8)
    assert hash_images(dataset) == hashlib.sha256(pixels.tobytes()).hexdigest()
    assert count_bytes(dataset) == pixels.nbytes


def test_the_card_beside_examples_has_a_check_that_can_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_settings, "_DECLARED", {})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "declares.py").write_text(
        "from tfcomp.config.own_settings import declare_setting\n"
        "declare_setting('petals', 5, 'Petals.')\n"
    )
    config = parse(*BUMPS, "--plugins=declares", "--petals=7")
    card = (materialize(config, tmp_path / "out") / "README.md").read_text()
    check = re.findall(r"```python\n(.*?)```", card, re.DOTALL)[1]
    exec(check, {})
    other = check.replace("'grid_size': 8", "'grid_size': 9")
    assert other != check
    with pytest.raises(AssertionError):
        exec(other, {})
    assert "| train | 60 |" in card and "| ood | 4 |" in card
    assert "- x: 8 values from 0 to 7 px" in card
    header = yaml.safe_load(card.split("---\n", 2)[1])
    assert header["pretty_name"].startswith("gaussian_bumps, square:3-4")
    assert header["license"] == "mit" and len(header["tags"]) == 2
    assert header["size_categories"] == ["n<1K"]


def test_the_card_of_a_table_says_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of several images of a combination, and of a control."""
    images = np.random.default_rng(0).random((18, 4, 4))
    classes = np.argwhere(np.ones((3, 3, 2)))
    members = {"images": images, "classes": classes, "names": ["a", "b", "c"]}
    np.savez(tmp_path / "own.npz", **members)
    flags = ["--dataset=table", f"--data={tmp_path / 'own.npz'}", "--model=mlp"]
    flags += ["--factors=a,b", "--region=a:2,b:2"]
    config = parse(*flags, "--train_all")
    folder = materialize(config, tmp_path)
    card = (folder / "README.md").read_text()
    assert "outside and inside of the region" in card
    assert "held out" not in card
    assert "must not see" not in card and "are means over" in card
    assert str(tmp_path) not in card and "\n.\n" not in card
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", card, re.DOTALL)[1], {})
    stored = tfds.builder_from_directory(folder).as_dataset(split="train")
    held_out = [e["is_ood"] for e in stored.as_numpy_iterator()]
    assert len(held_out) == 18 and held_out[-2:] == [True, True]
    assert sum(held_out) == 2
