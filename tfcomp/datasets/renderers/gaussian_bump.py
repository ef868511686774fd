"""Gaussian bumps, and stripes as bumps with an absent coordinate.

    image[row, column] = exp(-(column - x)^2 / 2 s^2) exp(-(row - y)^2 / 2 s^2)

(section 3.1). An absent coordinate (NaN) contributes no factor to the
product, so a vertical stripe is the bump at (x, NaN): one renderer for both
(appendix E).
"""

import tensorflow as tf


def render_gaussians(
    factors: tf.Tensor, grid_size: int, sigma: float, polarity: str = "bright"
) -> tf.Tensor:
    """Draws one bump or stripe per row of the factor table.

    Positions (x, y) [n, 2] and the standard deviation sigma are in pixels, of
    which there are N along a side; the polarity is "bright" (1 on 0) or "dark"
    (1 minus that).

    Returns:
        Images, float32 [n, N, N, 1], `image[row = y, column = x]`.
    """
    profiles = _compute_profiles(factors, grid_size, sigma)  # [n, 2, N]
    images = tf.einsum("nj,ni->nij", profiles[:, 0], profiles[:, 1])
    return _apply_polarity(images, polarity)


def render_plus(
    factors: tf.Tensor, grid_size: int, sigma: float, polarity: str = "bright"
) -> tf.Tensor:
    """The sum of the vertical stripe at x and the horizontal one at y.

    It is what a network that has seen only stripes composes for an unseen
    pair (section 4.2). Before polarity, its height is 2 at the crossing.
    Arguments and result are those of `render_gaussians`.
    """
    profiles = _compute_profiles(factors, grid_size, sigma)  # [n, 2, N]
    vertical = profiles[:, 0, tf.newaxis, :]  # [n, 1, N]
    horizontal = profiles[:, 1, :, tf.newaxis]  # [n, N, 1]
    return _apply_polarity(vertical + horizontal, polarity)


def _compute_profiles(
    factors: tf.Tensor, grid_size: int, sigma: float
) -> tf.Tensor:
    # The Gaussian of each coordinate along its axis of the image, float32
    # [n, F, N]; ones where the coordinate is absent. Computed in float64: the
    # vectorized and the scalar float32 exponential differ in the last bit, so
    # that an image would depend on the batch in which it is drawn.
    centers = tf.cast(factors, tf.float64)[..., tf.newaxis]  # [n, F, 1]
    pixels = tf.range(grid_size, dtype=tf.float64)
    profiles = tf.exp(-0.5 * tf.square((pixels - centers) / sigma))
    absent = tf.math.is_nan(profiles)
    present = tf.where(absent, tf.ones_like(profiles), profiles)
    return tf.cast(present, tf.float32)


def _apply_polarity(images: tf.Tensor, polarity: str) -> tf.Tensor:
    images = images[..., tf.newaxis]
    return 1.0 - images if polarity == "dark" else images
