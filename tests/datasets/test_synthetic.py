"""Renderers, stripes and composed objects against slow definitions."""

import math

import numpy as np
import pytest
import scipy.ndimage
import tensorflow as tf

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset, renderers

POINTS = np.array(
    [[3, 5], [0, 11], [2.3, 7.9], [11, 0], [-4.0, 30.0]],
    np.float32,
)
STRIPES = np.array([[3.5, np.nan], [np.nan, 8.0]], np.float32)
ALL = np.concatenate([POINTS, STRIPES, np.full((1, 2), np.nan, np.float32)])


def gauss(distance: float, sigma: float) -> float:
    return math.exp(-(distance**2) / (2 * sigma**2))


def draw_slowly(
    factors: np.ndarray,
    size: int,
    sigma: float,
    polarity: str,
    combine,
) -> np.ndarray:
    """Pixel by pixel; an absent coordinate counts as one everywhere."""
    images = np.zeros((len(factors), size, size, 1))
    for index, row, column in np.ndindex(images.shape[:3]):
        x, y = factors[index].tolist()
        along_x = 1.0 if math.isnan(x) else gauss(column - x, sigma)
        along_y = 1.0 if math.isnan(y) else gauss(row - y, sigma)
        images[index, row, column, 0] = combine(along_x, along_y)
    return 1 - images if polarity == "dark" else images


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("polarity", ["bright", "dark"])
def test_bump_equals_loop(sigma: float, polarity: str) -> None:
    found = renderers.render_gaussians(ALL, 12, sigma, polarity)
    expected = draw_slowly(ALL, 12, sigma, polarity, lambda a, b: a * b)
    assert found.shape == (8, 12, 12, 1)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, atol=2e-7)


ANGLES = np.array([0, 33.3, 45, 90, 161.5, 180, 270, 359.9, 360, -20, 725])


@pytest.mark.parametrize("shape", [(28, 28), (9, 14)])
def test_agrees_with_scipy(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    # No margin of zeros: what comes from outside must be right, too.
    images = rng.random((len(ANGLES), *shape))
    rotated = np.asarray(renderers.rotate_images(images, ANGLES))
    assert rotated.shape == (len(ANGLES), *shape, 1)
    assert rotated.dtype == np.float32
    for image, angle, result in zip(images, ANGLES, rotated, strict=True):
        expected = scipy.ndimage.rotate(image, angle, order=1, reshape=False)
        np.testing.assert_allclose(result[..., 0], expected, atol=1e-6)


EACH = pytest.mark.parametrize("name", ["sum", "product", "occlusion"])


def make(name: str, *flags: str) -> Dataset:
    flags = (
        "--flagfile=composed.flags",
        f"--composition={name}",
        *flags,
    )
    return make_dataset(parse_config(flags))


def share(distance: float) -> float:
    return 1 / (1 + math.exp((distance - 0.25 * 16) / 0.5))


@EACH
def test_images_against_their_definition(name: str) -> None:
    point = [5.2, 7.1, 9.3, 8.4]
    dataset = make(name)
    image = dataset.render(np.float32([point]))[0].numpy()
    assert image.shape == (16, 16, 1)
    assert dataset.ground == float(name == "product")
    for row, column in np.ndindex(16, 16):
        a = share(math.hypot(column - point[0], row - point[1]))
        b = share(max(abs(column - point[2]), abs(row - point[3])))
        expected = {
            "sum": 0.7 * a + 0.9 * b,
            "product": (1 - 0.7 * a) * (1 - 0.9 * b),
            "occlusion": 0.7 * a + (1 - a) * 0.9 * b,
        }[name]
        assert image[row, column, 0] == pytest.approx(expected, abs=1e-5)


def make_stripes(*flags: str) -> Dataset:
    return make_dataset(parse_config(["--flagfile=stripes.flags", *flags]))


def test_stripes_show_every_value_of_one_factor() -> None:
    train = make_stripes().splits.train
    assert train.shape == (56, 2)
    assert (np.isnan(train).sum(axis=1) == 1).all()
    for column in range(2):
        values = train[:, column]
        values = np.sort(values[~np.isnan(values)])
        np.testing.assert_array_equal(values, np.arange(28))

    dataset = make_stripes("--num_bumps=100")
    bumps = dataset.splits.train[56:]
    assert bumps.shape == (100, 2)
    assert len(np.unique(bumps, axis=0)) == 100
    assert not dataset.region.contains(bumps).any()
    assert dataset.splits.points.is_test.sum() == 588 - 100


def test_truths_are_bump_and_plus() -> None:
    dataset = make_stripes()
    factors = np.array([[5.0, 9.0]], np.float32)
    bump = dataset.render_array(factors)[0, :, :, 0]
    plus = dataset.render_array(factors, dataset.other_truths["plus"])
    plus = plus[0, :, :, 0]
    stripes = np.array([[5.0, np.nan], [np.nan, 9.0]], np.float32)
    vertical, horizontal = dataset.render_array(stripes)[..., 0]
    np.testing.assert_allclose(plus, vertical + horizontal, rtol=1e-6)
    np.testing.assert_allclose(bump, vertical * horizontal, atol=1e-7)
    assert np.unravel_index(plus.argmax(), plus.shape) == (
        9,
        5,
    )
