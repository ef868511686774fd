"""Plus shapes: the additive composition of two stripes (section 4.2)."""

from __future__ import annotations

import tensorflow as tf

from tfcomp.datasets.renderers.gaussian_bump import apply_polarity
from tfcomp.datasets.renderers.gaussian_bump import compute_profiles


def render_plus(
    factors: tf.Tensor, grid_size: int, sigma: float, polarity: str = "bright"
) -> tf.Tensor:
    """The sum of the vertical stripe at x and the horizontal one at y.

    It is what a network that has seen only stripes composes for an unseen
    pair, before polarity; its height is 2 at the crossing.

    Args:
        factors: [n, 2] positions (x, y) in pixels.
        grid_size: Pixels N along a side.
        sigma: Standard deviation in pixels.
        polarity: "bright" or "dark".

    Returns:
        Images, float32 [n, N, N, 1], `image[row = y, column = x]`.
    """
    profiles = compute_profiles(factors, grid_size, sigma)  # [n, 2, N]
    vertical = profiles[:, 0, tf.newaxis, :]  # [n, 1, N]
    horizontal = profiles[:, 1, :, tf.newaxis]  # [n, N, 1]
    return apply_polarity((vertical + horizontal)[..., tf.newaxis], polarity)
