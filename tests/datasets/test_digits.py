"""Rotated digits: table, factors, stand-ins, MNIST where it is found."""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.ndimage
import tensorflow_datasets as tfds

import tfcomp
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, digits, make_dataset
from tfcomp.datasets.digits import draw_stand_in
from tfcomp.datasets.notes import list_notes

STAND_IN = "--digit_source=stand_in"


def make(*flags: str) -> Dataset:
    return make_dataset(
        parse_config(["--flagfile=rotated_mnist.flags", *flags])
    )


@pytest.fixture(scope="module")
def mnist_dir() -> Path:
    """A TFDS data directory with MNIST, or the test is skipped."""
    beside = Path(tfcomp.__file__).parents[2] / "shared/tensorflow_datasets"
    for place in (os.environ.get("TFDS_DATA_DIR"), beside):
        if place and list(Path(place).glob("mnist/*/dataset_info.json")):
            return Path(place)
    pytest.skip("no TFDS mnist in TFDS_DATA_DIR")


def test_published_number_of_images() -> None:
    splits = make(STAND_IN).splits
    assert len(splits.train) == 888
    assert splits.is_ood.sum() == 112
    assert not splits.points.is_test.any()
    assert splits.hidden == ("angle",)
    held_out = splits.grid[splits.is_ood]
    assert held_out.min() == 160 and held_out.max() == 200
    upright = splits.train == 0
    assert upright.sum() == 2  # 0 and 360 degrees


def test_images_are_those_of_scipy() -> None:
    angles = np.array([[0], [12.5], [90], [170], [301]], np.float32)
    images = make(STAND_IN).render_array(angles)
    digit = draw_stand_in(4)
    for image, angle in zip(images, angles[:, 0], strict=True):
        expected = scipy.ndimage.rotate(digit, angle, order=1, reshape=False)
        np.testing.assert_allclose(image[..., 0], expected, atol=1e-4)


def test_stand_ins_are_ten_digits_and_say_so() -> None:
    digits = {draw_stand_in(digit).tobytes() for digit in range(10)}
    assert len(digits) == 10
    image = draw_stand_in(8)
    assert image.shape == (28, 28) and image.dtype == np.float32
    assert image.min() == 0 and image.max() == 1
    # The corners are empty: nothing is lost when it turns.
    assert image[:4].max() == 0 and image[:, :4].max() == 0
    lines = list_notes(make(STAND_IN))
    assert any("not MNIST" in line for line in lines)
    assert not any("MNIST" in line for line in list_notes(make()))


def test_first_four(mnist_dir: Path) -> None:
    """Against all of the data, read in the plain way."""
    examples = tfds.load("mnist", split="train[:50]", data_dir=mnist_dir)
    fours = [e for e in tfds.as_numpy(examples) if e["label"] == 4]
    for index in (0, 1):
        image = digits.load_digit(mnist_dir, 4, index)
        expected = fours[index]["image"][..., 0] / np.float32(255)
        np.testing.assert_array_equal(image, expected)


def test_no_network_is_used(mnist_dir: Path, tmp_path: Path) -> None:
    refuse = mock.Mock(side_effect=AssertionError("there is no network"))
    with mock.patch("socket.socket.connect", refuse):
        make(f"--data_dir={mnist_dir}").prepare()
        with pytest.raises(RunError, match="no MNIST"):
            make(f"--data_dir={tmp_path}").prepare()
    assert not refuse.called


@pytest.mark.parametrize(
    "info",
    ["{", '{"name": "mnist", "version": "3.0.1"}'],
    ids=["info", "data"],
)
def test_damaged_directory_is_one_line(info: str, tmp_path: Path) -> None:
    version = tmp_path / "mnist" / "3.0.1"
    version.mkdir(parents=True)
    (version / "dataset_info.json").write_text(info)
    with pytest.raises(RunError, match="cannot be read") as caught:
        digits.load_digit(tmp_path, 4, 0)
    assert "\n" not in str(caught.value)
    with pytest.raises(RunError, match="stand_in"):
        digits.load_digit(tmp_path / "none", 4, 0)
