"""Renderers, stripes and composed objects against slow definitions."""

import math

import numpy as np
import pytest
import scipy.ndimage
from numpy.testing import assert_allclose

from tests.datasets.own_tables import make_data
from tfcomp.datasets import renderers

NAN = math.nan
POINTS = [[3, 5], [0, 11], [2.3, 7.9], [11, 0], [-4.0, 30.0]]
STRIPES = [[3.5, NAN], [NAN, 8.0], [NAN, NAN]]


def compute_bump(distance: float, sigma: float) -> float:
    """One everywhere along an absent coordinate."""
    if math.isnan(distance):
        return 1.0
    return math.exp(-(distance**2) / (2 * sigma**2))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("polarity", ["bright", "dark"])
def test_bump_equals_loop(sigma, polarity):
    points = np.array(POINTS + STRIPES, np.float32)

    images = renderers.render_gaussians(
        points,
        12,
        sigma,
        polarity,
    )

    expected = np.zeros((8, 12, 12))
    for index, row, column in np.ndindex(expected.shape):
        x, y = points[index]
        along_x = compute_bump(column - x, sigma)
        along_y = compute_bump(row - y, sigma)
        expected[index, row, column] = along_x * along_y
    if polarity == "dark":
        expected = 1 - expected
    assert images.dtype == "float32"
    assert_allclose(images[..., 0], expected, atol=2e-7)


@pytest.mark.parametrize("shape", [(28, 28), (9, 14)])
def test_rotations_agree_with_scipy(shape, rng):
    # No margin of zeros: what comes from outside must be right, too.
    angles = [0, 33.3, 45, 90, 161.5, 180, 270, 359.9, 360, -20, 725]
    images = rng.random((len(angles), *shape))

    rotated = renderers.rotate_images(images, np.array(angles)).numpy()

    assert rotated.dtype == np.float32
    for image, angle, result in zip(images, angles, rotated, strict=True):
        expected = scipy.ndimage.rotate(
            image,
            angle,
            order=1,
            reshape=False,
        )
        assert_allclose(result[..., 0], expected, atol=1e-6)


def compose(disc: float, square: float, composition: str) -> float:
    """Composes the shares of a pixel that a disc and a square cover."""
    if composition == "sum":
        return 0.7 * disc + 0.9 * square
    if composition == "product":
        return (1 - 0.7 * disc) * (1 - 0.9 * square)
    return 0.7 * disc + (1 - disc) * 0.9 * square


def compute_share(distance: float) -> float:
    """The share of a pixel that an object of radius 4 covers."""
    steps = (distance - 4) / 0.5
    return 1 / (1 + math.exp(steps))


@pytest.mark.parametrize("composition", ["sum", "product", "occlusion"])
def test_images_against_their_definition(composition):
    dataset = make_data(f"composed --composition={composition}")
    disc = (5.2, 7.1)
    square = (9.3, 8.4)

    images = dataset.render_array(np.float32([[*disc, *square]]))

    expected = np.zeros((1, 16, 16, 1))
    for row, column in np.ndindex(16, 16):
        pixel = np.array([column, row])
        to_square = np.abs(pixel - square).max()
        expected[0, row, column] = compose(
            compute_share(math.dist(pixel, disc)),
            compute_share(to_square),
            composition,
        )
    ground = 0.0
    if composition == "product":
        ground = 1.0
    assert_allclose(images, expected, atol=1e-5)
    assert dataset.ground == ground


def test_stripes_and_bumps():
    dataset = make_data("stripes --num_bumps=100")

    splits = dataset.splits
    stripes = splits.train[:56]
    bumps = splits.train[56:]
    num_absent = np.isnan(stripes).sum(axis=1)
    assert (num_absent == 1).all()
    for values in stripes.T:
        present = values[~np.isnan(values)]
        assert sorted(present) == list(range(28))
    assert len(np.unique(bumps, axis=0)) == 100
    assert not dataset.region.contains(bumps).any()
    assert splits.points.is_test.sum() == 588 - 100


def test_truths_are_bump_and_plus():
    dataset = make_data("stripes")
    factors = np.float32([[5, 9], [5, NAN], [NAN, 9]])

    bump, vertical, horizontal = dataset.render_array(factors)
    plus = dataset.other_truths["plus"]
    (cross,) = dataset.render_array(factors[:1], plus)

    assert_allclose(bump, vertical * horizontal, atol=1e-7)
    assert_allclose(cross, vertical + horizontal, rtol=1e-6)
    row, column, _ = np.unravel_index(cross.argmax(), cross.shape)
    assert row == 9
    assert column == 5
