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
ELLIPSE = (1.0, 0.6)  # its half axes, in half sides of the square
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
    across, along = _compute_profiles(factors, grid_size, sigma)
    images = tf.einsum("nj,ni->nij", across, along)
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
    across, along = _compute_profiles(factors, grid_size, sigma)
    vertical = across[:, tf.newaxis]  # [n, 1, N]
    horizontal = along[..., tf.newaxis]  # [n, N, 1]
    images = vertical + horizontal
    return _apply_polarity(images, polarity)


def _compute_profiles(
    factors: tf.Tensor,
    grid_size: int,
    sigma: float,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns Gaussians along x and along y, [n, N]; ones where absent."""
    centers = tf.cast(factors, tf.float64)
    centers = centers[..., tf.newaxis]  # [n, F, 1]
    pixels = tf.range(grid_size, dtype=tf.float64)
    distances = (pixels - centers) / sigma
    squares = tf.square(distances)
    profiles = tf.exp(-0.5 * squares)

    absent = tf.math.is_nan(profiles)
    ones = tf.ones_like(profiles)
    profiles = tf.where(absent, ones, profiles)
    profiles = tf.cast(profiles, tf.float32)
    return profiles[:, 0], profiles[:, 1]


def _apply_polarity(
    images: tf.Tensor,
    polarity: str,
) -> tf.Tensor:
    images = images[..., tf.newaxis]
    if polarity == "dark":
        return 1.0 - images
    return images


def rotate_images(
    images: tf.Tensor,
    degrees: tf.Tensor,
) -> tf.Tensor:
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
    last_row = height - 1
    last_column = width - 1
    rows, columns = _turn_pixels(height, width, degrees)
    is_inside = _lie_between(rows, last_row)
    is_inside &= _lie_between(columns, last_column)

    rows = tf.clip_by_value(rows, 0.0, last_row)
    columns = tf.clip_by_value(columns, 0.0, last_column)
    pixels = _interpolate(images, rows, columns)
    zeros = tf.zeros_like(pixels)
    pixels = tf.where(is_inside, pixels, zeros)
    pixels = tf.cast(pixels, tf.float32)
    return pixels[..., tf.newaxis]


def _lie_between(places: tf.Tensor, last: int) -> tf.Tensor:
    """Marks places from 0 to the last one, but for rounding."""
    is_low = places >= -SLACK
    is_high = places <= last + SLACK
    return is_low & is_high


def _turn_pixels(
    height: int,
    width: int,
    degrees: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns row and column that each pixel is taken from, [n, H, W]."""
    angles = tf.cast(degrees, tf.float64)
    angles = angles[:, tf.newaxis, tf.newaxis]
    radians = angles * (math.pi / 180.0)
    cos = tf.cos(radians)
    cos = _round(cos)
    sin = tf.sin(radians)
    sin = _round(sin)

    middle_row = (height - 1) / 2
    row = tf.range(height, dtype=tf.float64)
    row = row[:, tf.newaxis]
    row = row - middle_row
    middle_column = (width - 1) / 2
    column = tf.range(width, dtype=tf.float64)
    column = column[tf.newaxis]
    column = column - middle_column

    rows = cos * row + sin * column
    rows = rows + middle_row
    columns = -sin * row + cos * column
    columns = columns + middle_column
    return rows, columns


def _round(cosines: tf.Tensor) -> tf.Tensor:
    steps = tf.round(cosines / GRAIN)
    return steps * GRAIN


def _interpolate(
    images: tf.Tensor,
    rows: tf.Tensor,
    columns: tf.Tensor,
) -> tf.Tensor:
    """Interpolates images [n, H, W] between their pixels, [n, H, W]."""
    height, width = images.shape[1:]
    last_row = height - 1.0
    last_column = width - 1.0
    flat_shape = [-1, height * width]
    flat = tf.reshape(images, flat_shape)
    top = tf.floor(rows)
    left = tf.floor(columns)

    pixels = tf.zeros_like(rows)
    for down, right in np.ndindex(2, 2):
        row_distance = tf.abs(rows - top - down)
        row_weight = 1.0 - row_distance
        column_distance = tf.abs(columns - left - right)
        column_weight = 1.0 - column_distance
        weight = row_weight * column_weight

        # A neighbor beyond the last row or column has weight 0.
        row = tf.minimum(top + down, last_row)
        column = tf.minimum(left + right, last_column)
        place = row * width + column
        neighbors = tf.gather(
            flat,
            indices=tf.cast(place, tf.int64),
            batch_dims=1,
        )
        pixels += weight * neighbors
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
    reach = math.ceil(REACH * HALF_SIDE * grid_size)
    last = reach + 1
    end = last + 1
    window = tf.range(-last, end, dtype=tf.float64)  # [W]
    x = tf.round(columns["x"])
    y = tf.round(columns["y"])
    x_offset = x - columns["x"]
    y_offset = y - columns["y"]
    window_columns = window[tf.newaxis]
    window_rows = window[:, tf.newaxis]
    distance = _measure_sprites(
        columns,
        right=window_columns + x_offset,  # [n, 1, W]
        above=window_rows + y_offset,  # [n, W, 1]
        grid_size=grid_size,
        shapes=shapes,
    )
    share = 0.5 - distance
    covered = tf.clip_by_value(share, 0.0, 1.0)
    covered = tf.cast(covered, tf.float32)

    images = _place_windows(
        covered,
        rows=y[:, 0] + window,
        columns=x[:, 0] + window,
        grid_size=grid_size,
    )
    if "hue" in columns:
        colors = _make_colors(columns["hue"])
        images = images * colors
    return images


def _place_windows(
    windows: tf.Tensor,
    rows: tf.Tensor,
    columns: tf.Tensor,
    grid_size: int,
) -> tf.Tensor:
    """Puts windows [n, W, W] on images of zeros, [n, N, N, 1].

    Args:
        windows: The pixels of each window.
        rows: The rows of the image where they go, [n, W]; those outside of
            the image are left out.
        columns: The columns of the image, [n, W].
        grid_size: Rows and columns of the image, N.
    """
    rows = tf.cast(rows, tf.int32)
    row_codes = tf.one_hot(rows, grid_size)
    columns = tf.cast(columns, tf.int32)
    column_codes = tf.one_hot(columns, grid_size)
    # Sums of zeros and one pixel: exact.
    images = tf.einsum(
        "nvw,nvr,nwc->nrc",
        windows,
        row_codes,
        column_codes,
    )
    return images[..., tf.newaxis]


def _broadcast_values(values: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Makes all values float64, [n, 1, 1]."""
    shape = (-1, 1, 1)
    columns = {}
    zeros = 0.0  # [n, 1, 1] in the end
    for name, value in values.items():
        column = tf.cast(value, tf.float64)
        column = tf.reshape(column, shape)
        columns[name] = column
        zeros += 0.0 * column

    for name in values:
        columns[name] += zeros
    return columns


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
    half_side = HALF_SIDE * grid_size
    unit = half_side * columns["scale"]  # px
    degrees = columns["orientation"]
    angle = degrees * (np.pi / 180)
    cos = tf.cos(angle)
    sin = tf.sin(angle)
    # The offsets along the axes of the sprite, in half sides of the square.
    along = cos * right + sin * above
    along = along / unit
    across = cos * above - sin * right
    across = across / unit

    distance = 0.0
    for number, name in enumerate(shapes):
        measure = DISTANCES[name]
        shape_distance = measure(along, across)
        is_later = columns["shape"] >= number - 0.5
        distance = tf.where(is_later, shape_distance, distance)
    return distance * unit


def _make_colors(hue: tf.Tensor) -> tf.Tensor:
    """Makes saturated colors: red at 0, green at 120 degrees, [n, 1, 1, 3]."""
    hue = hue[..., tf.newaxis]
    turns = tf.math.floormod(hue, 360.0) / 360.0
    ones = tf.ones_like(turns)
    hsv = tf.concat([turns, ones, ones], axis=-1)
    rgb = tf.image.hsv_to_rgb(hsv)
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
    outside_right = tf.nn.relu(right)
    outside_above = tf.nn.relu(above)
    squares = outside_right**2 + outside_above**2
    outside = tf.sqrt(squares)
    nearest = tf.maximum(right, above)
    inside = tf.minimum(nearest, 0.0)
    return outside + inside


def _measure_ellipse(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    a, b = ELLIPSE
    x_square = x**2 / a**2
    y_square = y**2 / b**2
    f = x_square + y_square - 1.0
    fx = 2 * x / a**2
    fy = 2 * y / b**2
    return _measure_curve(f, fx, fy)


def _measure_heart(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns the distance to (x^2 + y^2 - 1)^3 = x^2 y^3."""
    disk = x**2 + y**2 - 1.0
    # Powers by names would change the last bits within graphs.
    f = disk**3 - x**2 * y**3

    # Derivatives of f along x and y.
    slope = 6 * disk**2
    fx = slope * x - 2 * x * y**3
    fy = slope * y - 3 * x**2 * y**2
    return _measure_curve(f, fx, fy)


def _measure_triangle(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns the distance to the sides of (-1, -1), (1, -1), (0, 1)."""
    side = 2.0 * tf.abs(x)
    slanted = side + y - 1.0
    slanted = slanted / math.sqrt(5.0)
    base = -1.0 - y
    return tf.maximum(slanted, base)


def _measure_l(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns the distance to two bars along the sides of a square."""
    half_stroke = STROKE / 2
    middle = 1.0 - half_stroke  # of a bar
    from_upright = x + middle
    from_lying = y + middle
    upright = _measure_box(from_upright, y, half_width=half_stroke)
    lying = _measure_box(x, from_lying, half_height=half_stroke)
    return tf.minimum(upright, lying)


def _measure_curve(
    f: tf.Tensor,
    fx: tf.Tensor,
    fy: tf.Tensor,
) -> tf.Tensor:
    """Returns the distance to the curve f = 0, to first order."""
    squares = fx**2 + fy**2
    slope = tf.sqrt(squares + TINY)
    return f / slope


DISTANCES = {
    "square": _measure_box,
    "ellipse": _measure_ellipse,
    "heart": _measure_heart,
    "triangle": _measure_triangle,
    "l": _measure_l,
}


def render_composed(
    factors: tf.Tensor,
    grid_size: int,
    composition: str,
) -> tf.Tensor:
    """Draws a disk and a square; a pixel has shares a and b of them in [0, 1].

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
    disk, square = _brighten_objects(factors, grid_size)
    if composition == "sum":
        images = disk + square
    elif composition == "product":
        disk_light = 1.0 - disk
        square_light = 1.0 - square
        images = disk_light * square_light
    else:
        uncovered = 1.0 - disk / DISK_LEVEL
        images = disk + uncovered * square
    images = tf.cast(images, tf.float32)
    return images[..., tf.newaxis]


def _brighten_objects(
    factors: tf.Tensor,
    grid_size: int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the brightness of the disk and of the square, alone.

    Args:
        factors: The centers x_a, y_a, x_b, y_b (px), [n, 4].
        grid_size: Rows and columns of the image, N.

    Returns:
        `.7 a` and `.9 b` of `render_composed`, float64 [n, N, N] each.
    """
    centers = tf.cast(factors, tf.float64)
    centers = centers[..., tf.newaxis, tf.newaxis]
    disk_x, disk_y, square_x, square_y = tf.unstack(centers, axis=1)
    columns = tf.range(grid_size, dtype=tf.float64)
    rows = columns[:, tf.newaxis]

    # Distances to both centers (px): round for the disk, else square.
    squares = (columns - disk_x) ** 2 + (rows - disk_y) ** 2
    disk_distance = tf.sqrt(squares)
    square_right = tf.abs(columns - square_x)
    square_above = tf.abs(rows - square_y)
    square_distance = tf.maximum(square_right, square_above)
    radius = RADIUS * grid_size
    disk_depth = radius - disk_distance
    disk_share = tf.sigmoid(disk_depth / EDGE)
    square_depth = radius - square_distance
    square_share = tf.sigmoid(square_depth / EDGE)
    disk = DISK_LEVEL * disk_share
    square = SQUARE_LEVEL * square_share
    return disk, square
