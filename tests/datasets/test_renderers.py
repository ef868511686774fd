"""Renderers against slow loops, eagerly and inside `tf.data`."""

import math

import numpy as np
import pytest
import scipy.ndimage
import tensorflow as tf

from tfcomp.datasets.renderers import (
    render_gaussians,
    render_plus,
    rotate_images,
)

POINTS = np.array(
    [[3, 5], [0, 11], [2.3, 7.9], [11, 0], [-4.0, 30.0]], np.float32
)
STRIPES = np.array([[3.5, np.nan], [np.nan, 8.0]], np.float32)
ALL = np.concatenate([POINTS, STRIPES, np.full((1, 2), np.nan, np.float32)])


def gauss(distance: float, sigma: float) -> float:
    return math.exp(-(distance**2) / (2 * sigma**2))


def draw_slowly(
    factors: np.ndarray, size: int, sigma: float, polarity: str, combine
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
    found = render_gaussians(ALL, 12, sigma, polarity)
    expected = draw_slowly(ALL, 12, sigma, polarity, lambda a, b: a * b)
    assert found.shape == (8, 12, 12, 1)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, atol=2e-7)


@pytest.mark.parametrize("render", [render_gaussians, render_plus])
def test_image_does_not_depend_on_batch_and_graph(
    render, rng: np.random.Generator
) -> None:
    factors = rng.uniform(0, 11, size=(62, 2)).astype(np.float32)
    factors[::7, 0] = np.nan
    whole = render(factors, 12, 1.0, "dark").numpy()
    for size in (1, 2, 5, 31):
        data = tf.data.Dataset.from_tensor_slices(factors).batch(size)
        data = data.map(lambda rows: render(rows, 12, 1.0, "dark"))
        found = np.concatenate(list(data.as_numpy_iterator()))
        np.testing.assert_array_equal(found, whole)
        eager = render(factors[:size], 12, 1.0, "dark")
        np.testing.assert_array_equal(eager, whole[:size])


ANGLES = np.array([0, 33.3, 45, 90, 161.5, 180, 270, 359.9, 360, -20, 725])


@pytest.mark.parametrize("shape", [(28, 28), (9, 14)])
def test_agrees_with_scipy(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    # No margin of zeros: what comes from outside must be right, too.
    images = rng.random((len(ANGLES), *shape))
    rotated = np.asarray(rotate_images(images, ANGLES))
    assert rotated.shape == (len(ANGLES), *shape, 1)
    assert rotated.dtype == np.float32
    for image, angle, result in zip(images, ANGLES, rotated, strict=True):
        expected = scipy.ndimage.rotate(image, angle, order=1, reshape=False)
        np.testing.assert_allclose(result[..., 0], expected, atol=1e-6)
