"""Canvases that are turned, scaled, moved and laid over each other.

A spatial transformer (Jaderberg et al. 2015): the point of a canvas that a
pixel shows is found by undoing the pose, and read by bilinear interpolation.
"""

import functools
import math
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from tfcomp.contrib.acting.first_poses import CANVAS, FIRST_SIZE

FINE = 32  # pixels along a side, up to which an image has subpixels
EMPTY = -12.0  # logit outside of a canvas


@functools.cache
def make_pixels(rows: int, columns: int, subpixels: int) -> np.ndarray:
    """Returns x and y of samples [n, 2]; the shorter side is -1 to 1."""
    side = min(rows, columns)

    def list_places(count: int) -> np.ndarray:
        middles = (np.arange(count * subpixels) + 0.5) / subpixels
        return (middles - count / 2) * 2 / side

    x = list_places(columns)
    y = list_places(rows)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    return grid.reshape(-1, 2).astype(np.float32)


def draw_shares(
    pose: tf.Tensor, canvas: tf.Tensor, shape: tuple[int, int], subpixels: int
) -> tf.Tensor:
    """Returns the share of each pixel that an object covers.

    The object, logits [n, K, K], is turned and scaled about its middle, then
    moved by a pose [n, 4] of x, y, angle and log size; 1 is the shorter side.
    """
    rows, columns = shape
    pixels = tf.constant(make_pixels(rows, columns, subpixels))
    x = pixels[:, 0] - pose[:, :1]  # [n, samples]
    y = pixels[:, 1] - pose[:, 1:2]
    turn = pose[:, 2:3]
    shrink = tf.exp(-pose[:, 3:])
    cos = tf.cos(turn) * shrink
    sin = tf.sin(turn) * shrink
    logits = sample(canvas, cos * x + sin * y, cos * y - sin * x)
    # Logits count pixels to an outline, so that edges of large objects are not
    # wider than edges of small ones.
    shares = tf.sigmoid(logits * tf.exp(pose[:, 3:]) / FIRST_SIZE)
    cells = (-1, rows, subpixels, columns, subpixels)
    return tf.reduce_mean(tf.reshape(shares, cells), axis=(2, 4))


def sample(canvas: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Reads canvases [n, K, K] at places [n, m], -1 to 1; else `EMPTY`."""
    side = canvas.shape[-1]
    padded = tf.pad(canvas - EMPTY, ((0, 0), (1, 2), (1, 2)))

    # The four neighbors of a place lie side by side: one lookup, and one sum
    # in its gradient.
    last = side + 2
    neighbors = [
        padded[:, i : last + i, j : last + j] for i in (0, 1) for j in (0, 1)
    ]
    corners = tf.stack(neighbors, axis=-1)  # [n, K + 2, K + 2, 4]

    right, column = _split((x + 1) * ((side - 1) / 2) + 1, side)
    up, row = _split((y + 1) * ((side - 1) / 2) + 1, side)
    start = tf.range(tf.shape(canvas)[0])[:, None] * last**2
    place = start + row * last + column
    logits = tf.gather(tf.reshape(corners, (-1, 4)), place)

    # A tensor for 1 - right would change the last bits of gradients.
    down = 1 - up
    weights = [down * (1 - right), down * right, up * (1 - right), up * right]
    return tf.reduce_sum(logits * tf.stack(weights, axis=-1), axis=-1) + EMPTY


def _split(place: tf.Tensor, side: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the part behind the comma, and the cell in a padded canvas."""
    place = tf.clip_by_value(place, 0.0, side + 1.0)
    whole = tf.floor(place)
    return place - tf.stop_gradient(whole), tf.cast(whole, tf.int32)


def compose(
    shares: tf.Tensor, colors: tf.Tensor, background: tf.Tensor
) -> tf.Tensor:
    """Lays objects [n, G, ...] of colors [n, G, C] over a background [C]."""
    image = tf.zeros_like(shares[:, 0, :, :, None]) + background
    for index in reversed(range(shares.shape[1])):
        share = shares[:, index, :, :, None]
        color = colors[:, index, None, None, :]
        image = image + share * (color - image)
    return image


def blur(images: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Blurs images [n, rows, columns, C] by a Gaussian, width in pixels."""
    for axis, equation in ((1, "nrck,rs->nsck"), (2, "nrck,cs->nrsk")):
        places = tf.range(images.shape[axis], dtype=tf.float32)
        apart = places[:, None] - places
        kernel = tf.exp(-0.5 * tf.square(apart / tf.maximum(width, 0.1)))
        area = tf.maximum(width, 0.1) * math.sqrt(2 * math.pi)
        images = tf.einsum(equation, images, kernel / tf.maximum(area, 1.0))
    return images


@keras.saving.register_keras_serializable(package="tfcomp")
class Draw(keras.layers.Layer):
    """Draws objects [n, G, 4 + C + K^2], white ones opposite the background."""

    def __init__(
        self,
        image_shape: Sequence[int],
        background: Sequence[float],
        is_white: bool,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs)
        self.image_shape = tuple(image_shape)
        self.background = list(background)
        self.is_white = is_white

    def call(
        self, inputs: tf.Tensor, subpixels: int | None = None
    ) -> tf.Tensor:
        rows, columns, colors = self.image_shape
        groups, depth = inputs.shape[1:]
        flat = tf.reshape(inputs, (-1, depth))
        if subpixels is None:
            subpixels = 2 if max(rows, columns) <= FINE else 1
        shares = draw_shares(
            flat[:, :4],
            tf.reshape(flat[:, 4 + colors :], (-1, CANVAS, CANVAS)),
            (rows, columns),
            subpixels,
        )
        shares = tf.reshape(shares, (-1, groups, rows, columns))

        background = tf.constant(self.background, tf.float32)
        shown = tf.sigmoid(inputs[:, :, 4 : 4 + colors])
        if self.is_white:
            shown = tf.zeros_like(shown) + (1.0 - background)
        return compose(shares, shown, background)
