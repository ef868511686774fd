"""Renderers: factor values -> images, as TensorFlow ops.

They work eagerly and inside `tf.data`. Positions and sigma are in pixels; an
absent coordinate is NaN. Images are float32 [n, N, N, channels] with
`image[row = y, column = x]`; "dark" is 1 minus "bright". Where noted they are
computed in float64, or last bits would depend on the batch and the graph.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

SLACK = 1e-9  # px that a turned coordinate may leave the image, by rounding
GRAIN = 2.0**-32  # to multiples of it cosines are rounded, to be exact
HALF_SIDE = 0.11  # of a square of scale 1, in sides of the image
ELLIPSE = (
    1.0,
    0.6,
)  # its half axes, in half sides of the square
STROKE = 0.7  # of the letter l, in half sides of the square
REACH = 1.5  # of the heart, the farthest, in half sides of the square
TINY = 1e-12
RADIUS = 0.25  # of the disk, and half a side of the square, in image sides
EDGE = 0.5  # px: an object fades out along this distance
DISK_LEVEL = 0.7  # brightness
SQUARE_LEVEL = 0.9


def render_gaussians(
    factors: tf.Tensor,
    grid_size: int,
    sigma: float,
    polarity: str = "bright",
) -> tf.Tensor:
    """Draws one bump or stripe per row of the factor table (section 3.1).

        image[row, column] = exp(-((column - x)^2 + (row - y)^2) / 2 s^2)

    An absent coordinate contributes no term, so a vertical stripe is the bump
    at (x, NaN): one renderer for both (appendix E).

    Args:
        factors: Positions x and y (px), [n, 2].
        grid_size: Rows and columns of the image, N.
        sigma: Standard deviation of a bump (px).
        polarity: `bright` or `dark`.

    Returns:
        Images, float32 [n, N, N, 1].
    """
    profiles = _compute_profiles(factors, grid_size, sigma)  # [n, 2, N]
    images = tf.einsum("nj,ni->nij", profiles[:, 0], profiles[:, 1])
    return _apply_polarity(images, polarity)


def render_plus(
    factors: tf.Tensor,
    grid_size: int,
    sigma: float,
    polarity: str = "bright",
) -> tf.Tensor:
    """Draws the sum of the stripes at x and at y, 2 high where they cross.

    Args:
        factors: Positions x and y (px), [n, 2].
        grid_size: Rows and columns of the image, N.
        sigma: Standard deviation of a stripe (px).
        polarity: `bright` or `dark`.

    Returns:
        Images, float32 [n, N, N, 1].
    """
    profiles = _compute_profiles(factors, grid_size, sigma)  # [n, 2, N]
    vertical = profiles[:, 0, tf.newaxis, :]  # [n, 1, N]
    horizontal = profiles[:, 1, :, tf.newaxis]  # [n, N, 1]
    return _apply_polarity(vertical + horizontal, polarity)


def _compute_profiles(
    factors: tf.Tensor, grid_size: int, sigma: float
) -> tf.Tensor:
    """Returns Gaussians in float64, [n, F, N]; ones where absent."""
    centers = tf.cast(factors, tf.float64)[..., tf.newaxis]  # [n, F, 1]
    pixels = tf.range(grid_size, dtype=tf.float64)
    profiles = tf.exp(-0.5 * tf.square((pixels - centers) / sigma))
    absent = tf.math.is_nan(profiles)
    profiles = tf.where(absent, tf.ones_like(profiles), profiles)
    return tf.cast(profiles, tf.float32)


def _apply_polarity(images: tf.Tensor, polarity: str) -> tf.Tensor:
    images = images[..., tf.newaxis]
    return 1.0 - images if polarity == "dark" else images


def rotate_images(images: tf.Tensor, degrees: tf.Tensor) -> tf.Tensor:
    """Rotates every image by its own angle.

    In float64, as `scipy.ndimage.rotate(image, angle, order=1, reshape=False)`:
    counterclockwise where row 0 is at the top, 0 outside of the image.

    Args:
        images: Images without channels, [n, H, W].
        degrees: Angles, [n].

    Returns:
        Images, float32 [n, H, W, 1].
    """
    images = tf.cast(images, tf.float64)
    height, width = images.shape[1:]
    rows, columns = _turn_pixels(height, width, degrees)
    is_inside = (rows >= -SLACK) & (rows <= height - 1 + SLACK)
    is_inside &= (columns >= -SLACK) & (columns <= width - 1 + SLACK)
    pixels = _interpolate(
        images,
        rows=tf.clip_by_value(rows, 0.0, height - 1.0),
        columns=tf.clip_by_value(columns, 0.0, width - 1.0),
    )
    pixels = tf.where(is_inside, pixels, tf.zeros_like(pixels))
    return tf.cast(pixels, tf.float32)[..., tf.newaxis]


def _turn_pixels(
    height: int, width: int, degrees: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns row and column that each pixel is taken from, [n, H, W]."""
    radians = tf.cast(degrees, tf.float64)[:, tf.newaxis, tf.newaxis]
    radians *= math.pi / 180.0
    cos = _round(tf.cos(radians))
    sin = _round(tf.sin(radians))

    middle_row = (height - 1) / 2
    middle_column = (width - 1) / 2
    row = tf.range(height, dtype=tf.float64)[:, tf.newaxis]
    row = row - middle_row
    column = tf.range(width, dtype=tf.float64)[tf.newaxis]
    column = column - middle_column
    rows = cos * row + sin * column + middle_row
    columns = -sin * row + cos * column + middle_column
    return rows, columns


def _round(cosines: tf.Tensor) -> tf.Tensor:
    return tf.round(cosines / GRAIN) * GRAIN


def _interpolate(
    images: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor
) -> tf.Tensor:
    """Interpolates images [n, H, W] between their pixels, [n, H, W]."""
    height, width = images.shape[1:]
    flat = tf.reshape(images, [-1, height * width])
    top = tf.floor(rows)
    left = tf.floor(columns)
    pixels = tf.zeros_like(rows)
    for down, right in np.ndindex(2, 2):
        weight = 1.0 - tf.abs(rows - top - down)
        weight *= 1.0 - tf.abs(columns - left - right)
        # A neighbor beyond the last row or column has weight 0.
        place = tf.minimum(top + down, height - 1.0) * width
        place += tf.minimum(left + right, width - 1.0)
        place = tf.cast(place, tf.int64)
        pixels += weight * tf.gather(flat, place, batch_dims=1)
    return pixels


def render_sprites(
    values: Mapping[str, Any],
    grid_size: int,
    shapes: Sequence[str],
) -> tf.Tensor:
    """Draws one sprite per combination, on a background of 0.

    A pixel has the share of it that the sprite covers, to first order: 1/2
    less the signed distance, 0 to 1. All is computed in float64.

    Args:
        values: Numbers or tensors [n]: `shape` (a number of one of `shapes`),
            `scale`, `orientation` (degrees), `x` and `y` (of the center, px)
            and, for colors, `hue` (degrees).
        grid_size: Rows and columns of the image, N.
        shapes: Keys of `DISTANCES`.

    Returns:
        Images [n, N, N, 1], or [n, N, N, 3] with a hue.
    """
    columns = _broadcast_values(values)
    # Only the W pixels around the center, which hold all of the sprite.
    reach = math.ceil(REACH * HALF_SIDE * grid_size) + 1
    window = tf.range(-reach, reach + 1, dtype=tf.float64)  # [W]
    x = tf.round(columns["x"])
    y = tf.round(columns["y"])
    right = window[tf.newaxis, :] + (x - columns["x"])  # [n, 1, W]
    above = window[:, tf.newaxis] + (y - columns["y"])  # [n, W, 1]
    distance = _measure_sprites(columns, right, above, grid_size, shapes)
    covered = tf.cast(
        tf.clip_by_value(0.5 - distance, 0.0, 1.0),
        tf.float32,
    )

    # Rows and columns of the window in the image, [n, W, N].
    row = tf.cast(y[:, 0] + window, tf.int32)
    column = tf.cast(x[:, 0] + window, tf.int32)
    rows = tf.one_hot(row, grid_size)
    places = tf.one_hot(column, grid_size)
    # Sums of zeros and one pixel: exact.
    images = tf.einsum("nvw,nvr,nwc->nrc", covered, rows, places)
    images = images[..., tf.newaxis]
    if "hue" in columns:
        images = images * _make_colors(columns["hue"])
    return images


def _broadcast_values(
    values: Mapping[str, Any],
) -> dict[str, tf.Tensor]:
    """Makes all values float64, [n, 1, 1]."""
    columns = {}
    for name, value in values.items():
        columns[name] = tf.reshape(tf.cast(value, tf.float64), (-1, 1, 1))
    zeros = sum(0.0 * column for column in columns.values())  # [n, 1, 1]
    return {name: column + zeros for name, column in columns.items()}


def _measure_sprites(
    columns: Mapping[str, tf.Tensor],
    right: tf.Tensor,
    above: tf.Tensor,
    grid_size: int,
    shapes: Sequence[str],
) -> tf.Tensor:
    """Measures the distance (px) of pixels to their sprite, [n, W, W].

    Args:
        columns: The values of each sprite, [n, 1, 1].
        right: How far pixels lie right of the center (px), [n, 1, W].
        above: How far they lie above it (px), [n, W, 1].
        grid_size: Rows and columns of the image.
        shapes: Keys of `DISTANCES`.
    """
    unit = HALF_SIDE * grid_size * columns["scale"]  # px
    angle = columns["orientation"] * (np.pi / 180)
    cos = tf.cos(angle)
    sin = tf.sin(angle)
    # The offsets along the axes of the sprite, in half sides of the square.
    along = (cos * right + sin * above) / unit
    across = (cos * above - sin * right) / unit

    *others, distance = [DISTANCES[name](along, across) for name in shapes]
    for number in reversed(range(len(others))):
        is_shape = columns["shape"] < number + 0.5
        distance = tf.where(is_shape, others[number], distance)
    return distance * unit


def _make_colors(hue: tf.Tensor) -> tf.Tensor:
    """Makes saturated colors: red at 0, green at 120 degrees, [n, 1, 1, 3]."""
    shifts = tf.constant([0.0, 240.0, 120.0], tf.float64)
    angle = tf.math.floormod(hue[..., tf.newaxis] + shifts, 360.0)
    rgb = tf.clip_by_value(tf.abs(angle / 60.0 - 3.0) - 1.0, 0.0, 1.0)
    return tf.cast(rgb, tf.float32)


def _measure_box(
    x: tf.Tensor,
    y: tf.Tensor,
    half_width: float = 1,
    half_height: float = 1,
) -> tf.Tensor:
    """Returns the distance to a rectangle around 0, negative inside."""
    right = tf.abs(x) - half_width
    above = tf.abs(y) - half_height
    outside = tf.sqrt(tf.nn.relu(right) ** 2 + tf.nn.relu(above) ** 2)
    return outside + tf.minimum(tf.maximum(right, above), 0.0)


def _measure_ellipse(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    a, b = ELLIPSE
    f = x**2 / a**2 + y**2 / b**2 - 1.0
    return _measure_curve(f, 2 * x / a**2, 2 * y / b**2)


def _measure_heart(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    disk = x**2 + y**2 - 1.0
    slope = 6 * disk**2
    f = disk**3 - x**2 * y**3
    fx = slope * x - 2 * x * y**3
    fy = slope * y - 3 * x**2 * y**2
    return _measure_curve(f, fx, fy)


def _measure_triangle(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns the distance to the sides of (-1, -1), (1, -1), (0, 1)."""
    slanted = (2.0 * tf.abs(x) + y - 1.0) / math.sqrt(5.0)
    return tf.maximum(slanted, -1.0 - y)


def _measure_l(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns the distance to two bars along the sides of a square."""
    bar = 1.0 - STROKE / 2  # where the middle of a bar lies
    return tf.minimum(
        _measure_box(x + bar, y, STROKE / 2, 1.0),
        _measure_box(x, y + bar, 1.0, STROKE / 2),
    )


def _measure_curve(f: tf.Tensor, fx: tf.Tensor, fy: tf.Tensor) -> tf.Tensor:
    """Returns the distance to the curve f = 0, to first order."""
    return f / tf.sqrt(fx**2 + fy**2 + TINY)


DISTANCES = {
    "square": _measure_box,
    "ellipse": _measure_ellipse,
    "heart": _measure_heart,
    "triangle": _measure_triangle,
    "l": _measure_l,
}


def render_composed(
    factors: tf.Tensor, grid_size: int, composition: str
) -> tf.Tensor:
    """Draws a disk and a square, of which a pixel has shares a and b in [0, 1].

        sum          .7 a + .9 b
        product      (1 - .7 a) (1 - .9 b): dark glasses on white
        occlusion    .7 a + (1 - a) .9 b: the disk is in front

    Args:
        factors: The centers x_a, y_a, x_b, y_b (px), [n, 4], used in float64.
        grid_size: Rows and columns of the image, N.
        composition: `sum`, `product` or `occlusion`.

    Returns:
        Images, float32 [n, N, N, 1].
    """
    centers = tf.cast(factors, tf.float64)[:, tf.newaxis, tf.newaxis]
    pixels = tf.range(grid_size, dtype=tf.float64)
    right = tf.abs(pixels[:, tf.newaxis] - centers[..., 0::2])  # [n, 1, N, 2]
    above = tf.abs(pixels[:, tf.newaxis] - centers[..., 1::2])
    above = tf.transpose(above, (0, 2, 1, 3))  # [n, N, 1, 2]
    disk = tf.sqrt(right[..., 0] ** 2 + above[..., 0] ** 2)
    square = tf.maximum(right[..., 1], above[..., 1])
    a = DISK_LEVEL * tf.sigmoid((RADIUS * grid_size - disk) / EDGE)
    b = SQUARE_LEVEL * tf.sigmoid((RADIUS * grid_size - square) / EDGE)
    if composition == "sum":
        images = a + b
    elif composition == "product":
        images = (1.0 - a) * (1.0 - b)
    else:
        images = a + (1.0 - a / DISK_LEVEL) * b
    return tf.cast(images[..., tf.newaxis], tf.float32)
