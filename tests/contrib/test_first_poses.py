"""Where the poses of the acting decoder start."""

from pathlib import Path

import numpy as np
import pytest
from numpy import ndarray as Array
from numpy.testing import assert_allclose

from tests.datasets.own_tables import make_data
from tfcomp.contrib.acting import first_poses
from tfcomp.contrib.acting.first_poses import (
    find_background,
    fit_moment,
    sample_poses,
)
from tfcomp.datasets import Dataset

FACTORS = [
    ["a", 3, "ordered"],
    ["b", 4, "ordered"],
    ["turn", 4, "periodic"],
]
# Four units of the second factor, after three of the first.
POSES = np.array([-0.5, 0.1, 0.7, 0.9])


def save_and_read(
    path: Path,
    images: Array,
    shape: tuple[int, int],
    *flags: str,
) -> Dataset:
    """A dataset of images [combinations, ...] of two factors."""
    classes = np.argwhere(np.ones(shape))
    copies = len(images) // len(classes)
    classes = np.repeat(classes, copies, axis=0)
    np.savez(
        path,
        images=images,
        classes=classes,
        names=["a", "b"],
    )
    line = "--dataset=table --region=a:#2,b:#1"
    return make_data(line, f"--data={path}", *flags)


def test_the_background_depends_on_the_training_images(tmp_path, rng):
    path = tmp_path / "noise.npz"
    images = rng.random((12, 8, 8))
    backgrounds = set()
    for seed in (0, 1):
        flags = ("--num_train=4", f"--seed={seed}")
        dataset = save_and_read(path, images, (3, 4), *flags)
        backgrounds.update(find_background(dataset))
    assert len(backgrounds) == 2


def test_objects_at_random_places_leave_the_background(tmp_path, rng):
    images = np.full((6 * 40, 8, 8), 0.25, np.float32)
    for image in images:
        row, column = rng.integers(0, 5, 2)
        image[row : row + 4, column : column + 4] = 1
    dataset = save_and_read(tmp_path / "moving.npz", images, (3, 2))
    assert find_background(dataset).tolist() == [0.25]


def render_disc(x: float, y: float, radius: float) -> Array:
    """A dark disc on 20 rows and 30 columns, [20, 30, 1]."""
    rows, columns = np.indices((20, 30)) + 0.5
    distance = np.hypot(columns - x, rows - y)
    image = np.clip(distance - radius + 0.5, 0, 1)
    return image[..., None]


def test_moments_are_the_middle_and_the_size_of_a_disc():
    large = render_disc(15, 10, 4)
    small = render_disc(20, 6, 2)
    images = np.stack([large, small])

    moments = first_poses.measure_moments(images, np.ones(1))

    # In halves of the shorter side, from the middle of the image.
    assert_allclose(moments["x"], [0, 0.5], atol=0.01)
    assert_allclose(moments["y"], [0, -0.4], atol=0.01)
    # A first template at this size covers as much.
    radii = 10 * first_poses.DISC * np.exp(moments["size"])
    assert_allclose(radii, [4, 2], rtol=0.03)


def fit(index: Array, moment: Array) -> first_poses.Start:
    """The start of a moment of images with classes [n, 3]."""
    a, b, turn = index.T
    codes = [np.eye(3)[a], np.eye(4)[b], np.eye(4)[turn]]
    return fit_moment(codes, moment)


GRID = np.argwhere(np.ones((3, 4, 4)))
ALL = np.tile(GRID, (4, 1))
OF_B = POSES[ALL[:, 1]]


def test_a_moment_starts_at_the_factors_that_it_needs():
    start = fit(ALL, 0.2 + OF_B)

    middle = POSES.mean()
    expected = np.zeros(11)
    expected[3:7] = POSES - middle
    assert start.base == pytest.approx(0.2 + middle)
    assert_allclose(start.moves, expected, atol=1e-9)


@pytest.mark.parametrize(
    "size, is_used",
    [
        (0.003, False),
        (0.1, True),
    ],
)
def test_what_is_far_below_the_floor_needs_no_factor(size, is_used):
    start = fit(ALL, OF_B + size * ALL[:, 0])
    assert start.moves[:3].any() == is_used


def test_one_image_of_a_value_is_enough():
    is_frequent = ALL[:, 1] < 3
    index = np.vstack([ALL[is_frequent], [0, 3, 0]])

    start = fit(index, POSES[index[:, 1]])

    poses = start.base + start.moves[3:7]
    assert_allclose(poses, POSES, atol=1e-9)


@pytest.mark.parametrize("count", [2, 3, 7, 8, 16])
def test_candidates_differ_in_how_they_turn(count, rng):
    _, moves = sample_poses("angle", 1, FACTORS, count, None, rng)

    turns = moves[:, 7:, 0]
    steps = np.diff(turns).mean(axis=1)
    num_left = np.sum(steps < -np.pi / 4)
    num_right = np.sum(steps > np.pi / 4)
    assert moves.shape == (count, 11, 1)
    assert count / 2 <= num_left + num_right < count
    assert abs(num_left - num_right) <= 1
