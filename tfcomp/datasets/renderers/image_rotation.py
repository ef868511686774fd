"""Rotation of an image about its center (appendix F.2)."""

import math

import tensorflow as tf

# Coordinates that leave the image by rounding only do not leave it, as at
# multiples of 90 degrees.
SLACK = 1e-9
# Cosines and sines are rounded to multiples of it, so that what follows is
# exact. Otherwise last bits depend on how a graph is optimized, and an image
# in a `tf.data` batch is not the same as one drawn eagerly: at 270 degrees,
# zeros become 1e-16. The image moves by less than 1e-8 pixels.
GRAIN = 2.0**-32


def rotate_images(images: tf.Tensor, degrees: tf.Tensor) -> tf.Tensor:
    """Rotates every image [n, H, W] by its own angle in degrees, [n].

    Counterclockwise where row 0 is drawn at the top, with bilinear
    interpolation: the same as `scipy.ndimage.rotate(image, angle, order=1,
    reshape=False)`. A pixel whose source lies outside the image is 0.
    Computed in float64 from rounded cosines (see `GRAIN`); float32
    [n, H, W, 1].
    """
    images = tf.cast(images, tf.float64)
    height, width = images.shape[1:]
    rows, columns = _find_sources(degrees, height, width)  # [n, H, W] each
    inside = _is_inside(rows, height) & _is_inside(columns, width)
    rows = tf.clip_by_value(rows, 0.0, height - 1.0)
    columns = tf.clip_by_value(columns, 0.0, width - 1.0)
    value = _interpolate(images, rows, columns)
    value = tf.where(inside, value, tf.zeros_like(value))
    return tf.cast(value, tf.float32)[..., tf.newaxis]


def _find_sources(
    degrees: tf.Tensor, height: int, width: int
) -> tuple[tf.Tensor, tf.Tensor]:
    # Row and column that each pixel of the result is taken from.
    radians = tf.cast(degrees, tf.float64) * (math.pi / 180.0)
    cos = _round(tf.cos(radians))[:, tf.newaxis, tf.newaxis]
    sin = _round(tf.sin(radians))[:, tf.newaxis, tf.newaxis]
    center = ((height - 1) / 2, (width - 1) / 2)
    row = tf.range(height, dtype=tf.float64)[:, tf.newaxis] - center[0]
    column = tf.range(width, dtype=tf.float64)[tf.newaxis] - center[1]
    rows = cos * row + sin * column + center[0]
    columns = -sin * row + cos * column + center[1]
    return rows, columns


def _round(values: tf.Tensor) -> tf.Tensor:
    return tf.round(values / GRAIN) * GRAIN


def _is_inside(coordinate: tf.Tensor, size: int) -> tf.Tensor:
    return (coordinate >= -SLACK) & (coordinate <= size - 1 + SLACK)


def _interpolate(
    images: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor
) -> tf.Tensor:
    top, left = tf.floor(rows), tf.floor(columns)
    value = tf.zeros_like(rows)
    for down in (0, 1):
        for right in (0, 1):
            weight = 1.0 - tf.abs(rows - top - down)
            weight *= 1.0 - tf.abs(columns - left - right)
            value += weight * _gather(images, top + down, left + right)
    return value


def _gather(
    images: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor
) -> tf.Tensor:
    # A neighbor beyond the last row or column has weight 0.
    height, width = images.shape[1:]
    row = tf.minimum(rows, height - 1.0)
    column = tf.minimum(columns, width - 1.0)
    flat = tf.cast(row * width + column, tf.int64)
    pixels = tf.reshape(images, [-1, height * width])
    picked = tf.gather(
        pixels, tf.reshape(flat, [-1, height * width]), batch_dims=1
    )
    return tf.reshape(picked, [-1, height, width])
