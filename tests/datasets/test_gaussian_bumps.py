"""The TFDS builder: same data as `--dataset=gaussian_bumps`, no leak."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow_datasets as tfds

import tfcomp.datasets.gaussian_bumps
from tfcomp.config.run_config import make_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.table_builder import TableConfig

Builder = tfcomp.datasets.gaussian_bumps.Builder
Splits = dict[str, list[dict]]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tfds")


@pytest.fixture(scope="module")
def splits(data_dir: Path) -> Splits:
    """The examples of `donut`, loaded by name and without a network."""
    refuse = mock.Mock(side_effect=AssertionError("there is no network"))
    with mock.patch("socket.socket.connect", refuse):
        loaded = tfds.load("gaussian_bumps/donut", data_dir=data_dir)
    assert not refuse.called
    known = tfds.list_builders(with_community_datasets=False)
    assert "gaussian_bumps" in known
    return {name: list(tfds.as_numpy(data)) for name, data in loaded.items()}


def stack(examples: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Factors and images, in the order of the grid."""
    factors = np.array([(e["value_x"], e["value_y"]) for e in examples])
    order = np.lexsort((factors[:, 1], factors[:, 0]))
    images = np.stack([e["image"] for e in examples])
    return factors[order], images[order]


def test_examples_are_those_of_the_dataset(splits: Splits) -> None:
    dataset = make_dataset(make_config({"polarity": "bright"}))
    grid, is_ood = dataset.splits.grid, dataset.splits.is_ood
    for name, table in (("train", grid[~is_ood]), ("ood", grid[is_ood])):
        factors, images = stack(splits[name])
        np.testing.assert_array_equal(factors, table)
        np.testing.assert_array_equal(images, dataset.render_array(table))


def test_labels_are_indices_of_the_values(splits: Splits) -> None:
    for name, examples in splits.items():
        for example in examples:
            assert example["label_x"] == example["value_x"]
            assert example["label_y"] == example["value_y"]
            assert example["is_ood"] == (name == "ood")
            image = example["image"][:, :, 0]
            peak = np.unravel_index(image.argmax(), image.shape)
            assert peak == (example["value_y"], example["value_x"])


@pytest.mark.usefixtures("splits")
def test_info(data_dir: Path) -> None:
    info = tfds.builder("gaussian_bumps/donut", data_dir=data_dir).info
    assert info.features["image"].shape == (28, 28, 1)
    assert info.features["label_x"].num_classes == 28
    assert info.splits["train"].num_examples == 495
    assert info.splits["ood"].num_examples == 289
    assert "row = y, column = x" in info.description
    assert "Forced Rendering" in info.citation


def prepare(data_dir: Path, **settings: object) -> Builder:
    """A builder with images of 8 pixels, its examples written."""
    flags = {"grid_size": 8, "polarity": "bright", **settings}
    config = TableConfig(name=settings["region"], flags=flags)
    builder = Builder(config=config, data_dir=data_dir)
    builder.download_and_prepare()
    return builder


def test_configuration_of_ones_own(data_dir: Path) -> None:
    builder = prepare(data_dir, region="corner:5", sigma=0.8, polarity="dark")
    assert builder.info.splits["train"].num_examples == 64 - 9
    example = next(iter(tfds.as_numpy(builder.as_dataset(split="ood"))))
    assert example["image"].shape == (8, 8, 1)
    assert example["image"].min() == 0.0


@pytest.mark.parametrize(
    ("name", "count"), [("stripes", 56), ("stripes_and_bumps", 106)]
)
def test_stripes_mark_the_absent_factor(
    name: str, count: int, data_dir: Path
) -> None:
    loaded = tfds.load(f"gaussian_bumps/{name}", data_dir=data_dir)
    train = list(tfds.as_numpy(loaded["train"]))
    assert len(train) == count
    assert len(loaded["ood"]) == 196
    stripes = [e for e in train if np.isnan(e["value_x"] + e["value_y"])]
    assert len(stripes) == 56
    for example in stripes:
        for factor in "xy":
            absent = np.isnan(example[f"value_{factor}"])
            assert absent == (example[f"label_{factor}"] == -1)
