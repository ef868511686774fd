"""Examples on disk: the same bits as rendering, and clear refusals."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds
from numpy.testing import assert_array_equal

from tests.datasets.own_tables import make_data, write_own
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset, materialized
from tfcomp.datasets.materialized import (
    attach_examples,
    load_split,
    materialize,
)
from tfcomp.training.fit import make_batches

LINES = {
    "continuous": "smoke --coordinates=continuous --num_train=40",
    "stripes_and_bumps": "smoke --dataset=stripes --num_bumps=9",
    "sprites": "sprites --sprite_sizes=2,1,3,3,3,2 --grid_size=16 "
    "--region=random:0.2",
    "digits": "rotated_mnist --digit_source=stand_in --num_angles=37 "
    "--digit_classes=4,0,1 --region=box:digit:4-4,angle:160-200",
}


@pytest.fixture
def stored(tmp_path: Path) -> RunConfig:
    """A run that reads its examples below `tmp_path`; none are there yet."""
    return parse_config(["smoke", f"--examples_dir={tmp_path}"])


def attach(config: RunConfig, **changes: np.ndarray) -> Dataset:
    """The dataset with the examples on disk, or with other splits."""
    dataset = make_dataset(config)
    splits = dataclasses.replace(dataset.splits, **changes)
    return attach_examples(config, dataclasses.replace(dataset, splits=splits))


def read_batches(dataset: Dataset) -> list[tuple]:
    batches = make_batches(
        dataset,
        16,
        seed=3,
        first_step=2,
        num_steps=9,
    )
    return list(batches.as_numpy_iterator())


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_batches_have_the_same_bits(line, tmp_path):
    config = parse_config([*line.split(), f"--examples_dir={tmp_path}"])
    materialize(config, tmp_path)

    stored = read_batches(attach(config))
    rendered = read_batches(make_data(line))

    for (factors, images), batch in zip(stored, rendered, strict=True):
        assert_array_equal(factors, batch[0])
        assert images.tobytes() == batch[1].tobytes()


def test_held_out_examples_are_there_and_written_once(
    stored,
    tmp_path,
    monkeypatch,
):
    dataset = make_dataset(stored)
    # Built once: the dataset of a run is passed on.
    monkeypatch.setattr(materialized, "make_dataset", None)
    folder = materialize(stored, tmp_path, dataset)

    assert attach_examples(stored, dataset).draw_train is not None
    held_out = load_split(stored, tmp_path, "ood", dataset)
    expected = dataset.splits.grid[dataset.splits.is_ood]
    assert_array_equal(held_out.factors, expected)
    assert_array_equal(held_out.images, dataset.render_array(expected))

    before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    assert materialize(stored, tmp_path, dataset) == folder
    assert {p: p.stat().st_mtime_ns for p in folder.iterdir()} == before


def test_examples_of_other_code_are_not_read(
    stored,
    tmp_path,
    monkeypatch,
):
    old = materialize(stored, tmp_path)
    monkeypatch.setattr(materialized, "compute_code_version", str.upper)
    with pytest.raises(RunError, match="no examples"):
        attach(stored)
    assert materialize(stored, tmp_path) != old
    assert attach(stored).draw_train is not None
    # Nor of another value of a plugin's setting, which may change images.
    other = dataclasses.replace(stored, own={"petals": 7})
    with pytest.raises(RunError, match="no examples"):
        attach(other)


def test_other_and_damaged_examples_are_refused(stored, tmp_path):
    folder = materialize(stored, tmp_path)
    moved = make_dataset(stored).splits.train.copy()
    moved[5, 1] = np.nextafter(moved[5, 1], np.float32(9))

    for table in (moved, moved[:-1]):
        with pytest.raises(RunError, match="other examples"):
            attach(stored, train=table)
    records = next(folder.glob("*train*"))
    records.write_bytes(records.read_bytes()[:1000])
    with pytest.raises(RunError, match="remove it") as caught:
        attach(stored)
    assert "\n" not in str(caught.value)


def test_examples_of_several_images_name_no_place_of_this_machine(
    tmp_path,
):
    classes = np.argwhere(np.ones((3, 3, 2)))
    images = np.random.default_rng(0).random((18, 4, 4))
    path = write_own(
        tmp_path / "own.npz",
        images=images,
        classes=classes,
    )
    line = "--dataset=table --factors=shape,size --region=shape:2,size:2"
    config = parse_config([*line.split(), f"--data={path}", "--train_all"])

    folder = materialize(config, tmp_path)

    info = (folder / "dataset_info.json").read_text()
    assert str(tmp_path) not in info
    examples = tfds.builder_from_directory(folder).as_dataset(split="train")
    is_ood = [example["is_ood"] for example in examples.as_numpy_iterator()]
    assert len(is_ood) == 18
    assert sum(is_ood) == 2
