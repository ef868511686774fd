"""Rotated digits: table, factors, stand-ins, MNIST where it is found."""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow_datasets as tfds

import tfcomp
from tests.datasets.own_tables import make_data
from tfcomp.config.errors import RunError
from tfcomp.datasets.synthetic import draw_stand_in, load_digit

STAND_IN = "rotated_mnist --digit_source=stand_in"


@pytest.fixture(scope="module")
def mnist_dir() -> Path:
    """A TFDS data directory with MNIST, or the test is skipped."""
    beside = Path(tfcomp.__file__).parents[2] / "shared/tensorflow_datasets"
    for place in (os.environ.get("TFDS_DATA_DIR"), beside):
        if place and list(Path(place).glob("mnist/*/dataset_info.json")):
            return Path(place)
    pytest.skip("no TFDS mnist in TFDS_DATA_DIR")


def test_published_number_of_images():
    splits = make_data(STAND_IN).splits

    assert len(splits.train) == 888
    assert splits.is_ood.sum() == 112
    assert not splits.points.is_test.any()
    assert list(splits.hidden) == ["angle"]
    held_out = splits.grid[splits.is_ood]
    assert held_out.min() == 160
    assert held_out.max() == 200
    upright = splits.train == 0
    assert upright.sum() == 2  # 0 and 360 degrees


def test_stand_ins_are_ten_digits_and_say_so():
    digits = np.stack([draw_stand_in(digit) for digit in range(10)])

    assert len(np.unique(digits, axis=0)) == 10
    assert digits.min() == 0
    assert digits.max() == 1
    # The corners are empty: nothing is lost when one turns.
    assert not digits[:, :4].any()
    assert not digits[:, :, :4].any()
    assert "not MNIST" in str(make_data(STAND_IN).list_notes())
    assert "MNIST" not in str(make_data("rotated_mnist").list_notes())


def test_first_four(mnist_dir):
    """Against all of the data, read in the plain way."""
    examples = tfds.load(
        "mnist",
        split="train[:50]",
        data_dir=mnist_dir,
    )
    fours = [e for e in tfds.as_numpy(examples) if e["label"] == 4]
    for index in (0, 1):
        image = load_digit(mnist_dir, 4, index)
        expected = fours[index]["image"][..., 0] / np.float32(255)
        np.testing.assert_array_equal(image, expected)


def test_no_network_is_used(mnist_dir, tmp_path):
    refuse = mock.Mock(side_effect=AssertionError("there is no network"))
    with mock.patch("socket.socket.connect", refuse):
        make_data("rotated_mnist", f"--data_dir={mnist_dir}").prepare()
        with pytest.raises(RunError, match="no MNIST"):
            make_data("rotated_mnist", f"--data_dir={tmp_path}").prepare()
    assert not refuse.called


@pytest.mark.parametrize(
    "info",
    ["{", '{"name": "mnist", "version": "3.0.1"}'],
    ids=["info", "data"],
)
def test_damaged_directory_is_one_line(info, tmp_path):
    version = tmp_path / "mnist" / "3.0.1"
    version.mkdir(parents=True)
    (version / "dataset_info.json").write_text(info)

    with pytest.raises(RunError, match="cannot be read") as caught:
        load_digit(tmp_path, 4, 0)
    assert "\n" not in str(caught.value)
    with pytest.raises(RunError, match="stand_in"):
        load_digit(tmp_path / "none", 4, 0)
