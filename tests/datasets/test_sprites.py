"""Sprites against a slow definition of their shapes; their factors."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.datasets.own_tables import make_data
from tfcomp.config.errors import ConfigError
from tfcomp.datasets.renderers import (
    ELLIPSE,
    HALF_SIDE,
    STROKE,
    render_sprites,
)
from tfcomp.datasets.synthetic import SHAPES

SIDE = 40


def is_inside(shape: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Extent of an upright sprite, in half sides of its square."""
    is_in_square = np.maximum(abs(x), abs(y)) <= 1
    if shape == 0:
        return is_in_square
    if shape == 1:
        width, height = ELLIPSE
        return np.hypot(x / width, y / height) <= 1
    if shape == 2:
        outside = x**2 + y**2 - 1
        return outside**3 <= x**2 * y**3
    if shape == 3:
        half_width = (1 - y) / 2
        return (y >= -1) & (abs(x) <= half_width)
    is_in_stroke = np.minimum(x, y) <= STROKE - 1
    return is_in_square & is_in_stroke


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize(
    "scale, orientation, x, y",
    [
        (1.0, 0.0, 19.3, 20.1),
        (0.7, 60.0, 8.2, 30.4),
        (0.5, 200.0, 30.0, 12.5),
    ],
)
def test_pixels_inside_are_more_than_half_covered(
    shape,
    scale,
    orientation,
    x,
    y,
):
    values = {
        "shape": shape,
        "scale": scale,
        "orientation": orientation,
        "x": x,
        "y": y,
    }

    (image,) = render_sprites(values, SIDE, SHAPES).numpy()

    size = HALF_SIDE * SIDE * scale
    angle = math.radians(orientation)
    cos = math.cos(angle)
    sin = math.sin(angle)
    rows, columns = np.indices((SIDE, SIDE))
    right = (columns - x) / size
    above = (rows - y) / size
    is_covered = is_inside(
        shape,
        x=cos * right + sin * above,
        y=cos * above - sin * right,
    )
    assert_array_equal(image[..., 0] >= 0.5, is_covered)


def test_edges_are_smooth_and_areas_true():
    center = (SIDE - 1) / 2
    values = {
        "shape": 0,
        "scale": 1.0,
        "orientation": np.arange(0.0, 90.0, 7.0),
        "x": center,
        "y": center,
    }

    images = render_sprites(values, SIDE, SHAPES).numpy()

    area = (2 * HALF_SIDE * SIDE) ** 2
    assert_allclose(images.sum(axis=(1, 2, 3)), area, rtol=0.02)
    is_edge = (images > 0) & (images < 1)
    assert is_edge.any(axis=(1, 2, 3)).all()


def test_images_do_not_depend_on_the_batch_and_move_with_it():
    dataset = make_data("sprites")
    points = dataset.splits.grid[::500]
    moved = points[:1] + np.float32([0, 0, 0, 3, 2])

    images = dataset.render_array(points)

    for point, image in zip(points, images, strict=True):
        (alone,) = dataset.render_array(point[None])
        assert_array_equal(image, alone)
    (image,) = dataset.render_array(moved)
    by_pixels = np.roll(images[0], (2, 3), axis=(0, 1))
    assert_allclose(image, by_pixels, atol=1e-5)


def test_hue_colors_the_same_sprites():
    line = "sprites --region=none --sprite_sizes=3,1,1,2,2"
    gray = make_data(line)
    colored = make_data(f"{line},3")

    images = colored.render_array(colored.splits.grid)

    assert colored.space.names == ("shape", "x", "y", "hue")
    assert colored.image_shape == (64, 64, 3)
    plain = gray.render_array(gray.splits.grid)[..., 0]
    for hue in range(3):  # red, green, blue
        expected = np.zeros((*plain.shape, 3))
        expected[..., hue] = plain
        assert_array_equal(images[hue::3], expected)


def test_half_of_the_positions_hides_values():
    dataset = make_data("sprites --region=montero:extrapolation")
    assert not dataset.has_position
    assert dataset.splits.is_ood.mean() == 0.5
    assert list(dataset.splits.hidden) == ["x"]


@pytest.mark.parametrize("region", ["montero:element", "wiedemer:orthogonal"])
def test_shapes_without_symmetry_have_no_copies(region):
    line = "sprites --grid_size=16 --sprite_sizes=3,3,4,4,4"
    dataset = make_data(
        f"{line} --region={region} --sprite_shapes=heart,triangle,l"
    )
    assert dataset.space["shape"].names == ("heart", "triangle", "l")
    assert not dataset.copies.is_copy.any()


@pytest.mark.parametrize("shapes", ["circle", "", "heart,heart", "heart,l"])
def test_impossible_shapes_are_refused(shapes):
    with pytest.raises(ConfigError, match="--sprite_s"):
        make_data("sprites", f"--sprite_shapes={shapes}")
