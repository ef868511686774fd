"""Two objects, a disk and a square, composed in a known way."""

import tensorflow as tf

RADIUS = 0.25  # of the disk, and half a side of the square, in image sides
EDGE = 0.5  # px: an object fades out along this distance
LEVELS = (0.7, 0.9)  # brightness of the disk and of the square


def render_composed(
    factors: tf.Tensor, grid_size: int, composition: str
) -> tf.Tensor:
    """Draws a disk and a square, of which a pixel has shares a and b in [0, 1].

        sum          .7 a + .9 b
        product      (1 - .7 a) (1 - .9 b): dark glasses on white
        occlusion    .7 a + (1 - a) .9 b: the disk is in front

    Args:
        factors: Centers x_a, y_a, x_b, y_b in pixels [n, 4].
        grid_size: Pixels N along a side.
        composition: One of these names.

    Returns:
        Images, float32 [n, N, N, 1], `image[row = y, column = x]`.
    """
    # In float64, or an image would depend on the batch that it is drawn in.
    centers = tf.cast(factors, tf.float64)[:, tf.newaxis, tf.newaxis]
    pixels = tf.range(grid_size, dtype=tf.float64)
    right = tf.abs(pixels[:, tf.newaxis] - centers[..., 0::2])  # [n, 1, N, 2]
    above = tf.abs(pixels[:, tf.newaxis] - centers[..., 1::2])
    above = tf.transpose(above, (0, 2, 1, 3))  # [n, N, 1, 2]
    disk = tf.sqrt(right[..., 0] ** 2 + above[..., 0] ** 2)
    square = tf.maximum(right[..., 1], above[..., 1])
    a, b = (
        level * tf.sigmoid((RADIUS * grid_size - distance) / EDGE)
        for level, distance in zip(LEVELS, (disk, square), strict=True)
    )
    images = {
        "sum": a + b,
        "product": (1.0 - a) * (1.0 - b),
        "occlusion": a + (1.0 - a / LEVELS[0]) * b,
    }[composition]
    return tf.cast(images[..., tf.newaxis], tf.float32)
