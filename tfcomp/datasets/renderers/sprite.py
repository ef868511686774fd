"""Sprites with smooth edges, from the distance of a pixel to the outline.

A pixel has the share of it that the sprite covers, to first order: 1/2 less
the signed distance of its center in pixels, between 0 and 1.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

HALF_SIDE = 0.11  # of a square of scale 1, in sides of the image
ELLIPSE = (1.0, 0.6)  # its half axes, in half sides of the square
REACH = 1.5  # of the heart, the farthest, in half sides of the square
TINY = 1e-12


def render_sprites(values: Mapping[str, Any], grid_size: int) -> tf.Tensor:
    """Draws one sprite per combination.

    Of the values `shape` (0 square, 1 ellipse, 2 heart), `scale`,
    `orientation` (degrees), `x`, `y` (px, of the center) and, for colors,
    `hue` (degrees): numbers or tensors [n].

    Returns:
        Images of N = `grid_size` on a background of 0, float32 [n, N, N, 1],
        with a hue [n, N, N, 3]; `image[row = y, column = x]`.
    """
    # In float64, or an image would depend on the batch that it is drawn in.
    columns = {
        name: tf.reshape(tf.cast(value, tf.float64), (-1, 1, 1))
        for name, value in values.items()
    }
    zeros = sum(0.0 * column for column in columns.values())  # [n, 1, 1]
    columns = {name: column + zeros for name, column in columns.items()}
    unit = HALF_SIDE * grid_size * columns["scale"]  # px
    # Only the W pixels around the center, which hold all of the sprite.
    reach = math.ceil(REACH * HALF_SIDE * grid_size) + 1
    near = tf.range(-reach, reach + 1, dtype=tf.float64)  # [W]
    x, y = tf.round(columns["x"]), tf.round(columns["y"])
    right = near[tf.newaxis, :] + (x - columns["x"])  # [n, 1, W]
    above = near[:, tf.newaxis] + (y - columns["y"])  # [n, W, 1]
    across, up = _turn(columns["orientation"], right, above)
    distance = _choose(columns["shape"], across / unit, up / unit) * unit
    covered = tf.cast(tf.clip_by_value(0.5 - distance, 0.0, 1.0), tf.float32)
    images = tf.einsum(  # sums of zeros and one pixel: exact
        "nvw,nvr,nwc->nrc",
        covered,
        _place(y[:, 0] + near, grid_size),
        _place(x[:, 0] + near, grid_size),
    )[..., tf.newaxis]
    if "hue" in columns:
        images = images * tf.cast(_to_rgb(columns["hue"]), tf.float32)
    return images


def _place(rows: tf.Tensor, grid_size: int) -> tf.Tensor:
    """Where rows [n, W] of the window are in the image, [n, W, N]."""
    return tf.one_hot(tf.cast(rows, tf.int32), grid_size)


def _turn(
    orientation: tf.Tensor, right: tf.Tensor, above: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Offsets as seen from the sprite, whose own axes are turned, in px."""
    angle = orientation * (np.pi / 180)
    cos, sin = tf.cos(angle), tf.sin(angle)
    return cos * right + sin * above, cos * above - sin * right


def _choose(shape: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    square = _measure_square(x, y)
    ellipse = _measure_curve(*_differentiate_ellipse(x, y))
    heart = _measure_curve(*_differentiate_heart(x, y))
    rounded = tf.where(shape < 1.5, ellipse, heart)
    return tf.where(shape < 0.5, square, rounded)


def _measure_square(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Distance to the square of half side 1, negative inside."""
    right, above = tf.abs(x) - 1.0, tf.abs(y) - 1.0
    outside = tf.sqrt(tf.nn.relu(right) ** 2 + tf.nn.relu(above) ** 2)
    return outside + tf.minimum(tf.maximum(right, above), 0.0)


def _measure_curve(f: tf.Tensor, fx: tf.Tensor, fy: tf.Tensor) -> tf.Tensor:
    """Distance to the curve f = 0, to first order."""
    return f / tf.sqrt(fx**2 + fy**2 + TINY)


def _differentiate_ellipse(x: tf.Tensor, y: tf.Tensor) -> tuple:
    a, b = ELLIPSE
    return x**2 / a**2 + y**2 / b**2 - 1.0, 2 * x / a**2, 2 * y / b**2


def _differentiate_heart(x: tf.Tensor, y: tf.Tensor) -> tuple:
    """(x^2 + y^2 - 1)^3 - x^2 y^3 and its derivatives."""
    disk = x**2 + y**2 - 1.0
    slope = 6 * disk**2
    return (
        disk**3 - x**2 * y**3,
        slope * x - 2 * x * y**3,
        slope * y - 3 * x**2 * y**2,
    )


def _to_rgb(hue: tf.Tensor) -> tf.Tensor:
    """Fully saturated colors [n, 1, 1, 3]: red at 0, green at 120 degrees."""
    shifts = tf.constant([0.0, 240.0, 120.0], tf.float64)
    angle = tf.math.floormod(hue[..., tf.newaxis] + shifts, 360.0) / 60.0
    return tf.clip_by_value(tf.abs(angle - 3.0) - 1.0, 0.0, 1.0)
