"""Rotation in TensorFlow against SciPy, eagerly and inside `tf.data`."""

import numpy as np
import pytest
import scipy.ndimage
import tensorflow as tf

from tfcomp.datasets.renderers import rotate_images

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


def test_positive_angles_turn_counterclockwise() -> None:
    image = np.zeros((1, 9, 9))
    image[0, 4, 8] = 1  # to the right, row 0 at the top
    rotated = np.asarray(rotate_images(image, [90.0]))[0, :, :, 0]
    assert np.unravel_index(rotated.argmax(), rotated.shape) == (0, 4)


def test_same_inside_a_dataset(rng: np.random.Generator) -> None:
    images = rng.random((1, 8, 8))
    angles = np.linspace(0, 300, 6)

    def rotate(batch: tf.Tensor) -> tf.Tensor:
        return rotate_images(tf.repeat(images, 2, axis=0), batch)

    data = tf.data.Dataset.from_tensor_slices(angles).batch(2).map(rotate)
    inside = np.concatenate([np.asarray(part) for part in data])
    eager = rotate_images(np.repeat(images, 6, axis=0), angles)
    np.testing.assert_array_equal(inside, eager)
