"""Examples on disk: the same bits as rendering, and clear refusals."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tests.datasets.own_tables import write_own
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.config.settings import OwnSettings
from tfcomp.datasets import Dataset, make_dataset, materialized
from tfcomp.datasets.batches import make_batches
from tfcomp.datasets.materialized import (
    attach_examples,
    load_split,
    materialize,
)

BUMPS = (
    "--grid_size=8",
    "--region=square:3-4",
    "--polarity=bright",
)
SMALL = ("--flagfile=smoke.flags", "--region=corner:7")
KINDS = {
    "grid": SMALL,
    "num_train": (*SMALL, "--num_train=40"),
    "continuous": (
        *SMALL,
        "--coordinates=continuous",
        "--num_train=40",
    ),
    "stripes_and_bumps": (
        *SMALL,
        "--dataset=stripes",
        "--num_bumps=9",
    ),
    "sprites": (
        "--flagfile=sprites.flags",
        *("--sprite_sizes=2,1,3,3,3,2", "--grid_size=16"),
        "--region=random:0.2",
    ),
    "digits": (
        *(
            "--flagfile=rotated_mnist.flags",
            "--digit_source=stand_in",
        ),
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
    dataset = make_dataset(config)
    if config.data.examples_dir:
        dataset = attach(config)
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
    stored: RunConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
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
    stored: RunConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = materialize(stored, tmp_path)
    monkeypatch.setattr(materialized, "compute_code_version", str.upper)
    with pytest.raises(RunError, match="no examples"):
        attach(stored)
    assert materialize(stored, tmp_path) != old
    assert attach(stored).draw_train is not None
    # Nor of another value of a plugin's setting, which may change images.
    other = dataclasses.replace(stored, own=OwnSettings(petals=7))
    with pytest.raises(RunError, match="no examples"):
        attach(other)


def test_other_and_damaged_examples_are_refused(
    stored: RunConfig, tmp_path: Path
) -> None:
    folder = materialize(stored, tmp_path)
    moved = make_dataset(stored).splits.train.copy()
    moved[5, 1] = np.nextafter(moved[5, 1], np.float32(9))
    for table in (moved, moved[:-1]):
        with pytest.raises(RunError, match="other examples") as caught:
            attach(stored, train=table)
        assert "\n" not in str(caught.value)
    records = next(folder.glob("*train*"))
    records.write_bytes(records.read_bytes()[:1000])
    with pytest.raises(RunError, match="remove it") as caught:
        attach(stored)
    assert "\n" not in str(caught.value)


def test_examples_of_several_images_name_no_place_of_this_machine(
    tmp_path: Path,
) -> None:
    classes = np.argwhere(np.ones((3, 3, 2)))
    images = np.random.default_rng(0).random((18, 4, 4))
    path = write_own(tmp_path / "own.npz", images=images, classes=classes)
    config = parse(
        "--dataset=table",
        f"--data={path}",
        "--factors=shape,size",
        "--region=shape:2,size:2",
        "--train_all",
    )
    folder = materialize(config, tmp_path)
    info = (folder / "dataset_info.json").read_text()
    assert str(tmp_path) not in info
    stored = tfds.builder_from_directory(folder).as_dataset(split="train")
    is_ood = [example["is_ood"] for example in stored.as_numpy_iterator()]
    assert len(is_ood) == 18
    assert sum(is_ood) == 2
