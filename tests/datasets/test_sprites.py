"""Sprites against a slow definition of their shapes; their factors."""

import math

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.renderers import (
    ELLIPSE,
    HALF_SIDE,
    STROKE,
    render_sprites,
)
from tfcomp.datasets.synthetic import SHAPES

SIDE = 40


def make(*flags: str) -> Dataset:
    config = parse_config(["--flagfile=sprites.flags", *flags])
    return make_dataset(config)


def is_inside(shape: int, x: float, y: float) -> bool:
    """Extent of an upright sprite, in half sides of its square."""
    if shape == 0:
        return max(abs(x), abs(y)) <= 1
    if shape == 1:
        return math.hypot(x / ELLIPSE[0], y / ELLIPSE[1]) <= 1
    if shape == 2:
        return (x**2 + y**2 - 1) ** 3 <= x**2 * y**3
    if shape == 3:
        return y >= -1 and abs(x) <= (1 - y) / 2
    return max(abs(x), abs(y)) <= 1 and min(x, y) <= STROKE - 1


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize(
    ("scale", "orientation", "x", "y"),
    [
        (1.0, 0.0, 19.3, 20.1),
        (0.7, 60.0, 8.2, 30.4),
        (0.5, 200.0, 30.0, 12.5),
    ],
)
def test_pixels_inside_are_more_than_half_covered(
    shape: int,
    scale: float,
    orientation: float,
    x: float,
    y: float,
) -> None:
    values = {
        "shape": shape,
        "scale": scale,
        "orientation": orientation,
    }
    drawn = render_sprites({**values, "x": x, "y": y}, SIDE, SHAPES)
    image = drawn.numpy()[0, :, :, 0]
    size, angle = (
        HALF_SIDE * SIDE * scale,
        math.radians(orientation),
    )
    for row, column in np.ndindex(SIDE, SIDE):
        right, above = (column - x) / size, (row - y) / size
        own = (
            math.cos(angle) * right + math.sin(angle) * above,
            math.cos(angle) * above - math.sin(angle) * right,
        )
        assert (image[row, column] >= 0.5) == is_inside(shape, *own)


def test_edges_are_smooth_and_areas_true() -> None:
    angles = np.arange(0.0, 90.0, 7.0)
    center = (SIDE - 1) / 2
    values = {
        "shape": 0,
        "scale": 1.0,
        "x": center,
        "y": center,
    }
    values = {**values, "orientation": angles}
    images = render_sprites(values, SIDE, SHAPES).numpy()
    area = (2 * HALF_SIDE * SIDE) ** 2
    np.testing.assert_allclose(images.sum(axis=(1, 2, 3)), area, rtol=0.02)
    assert ((images > 0) & (images < 1)).any(axis=(1, 2, 3)).all()


def test_images_do_not_depend_on_the_batch_and_move_with_it() -> None:
    dataset = make()
    some = dataset.splits.grid[::97]
    images = dataset.render_array(some)
    alone = [dataset.render_array(row[None])[0] for row in some]
    np.testing.assert_array_equal(images, alone)
    moved = some[:1] + np.float32([0, 0, 0, 3, 2])
    expected = np.roll(images[0], (2, 3), axis=(0, 1))
    np.testing.assert_allclose(
        dataset.render_array(moved)[0], expected, atol=1e-5
    )


def test_hue_colors_the_same_sprites() -> None:
    colored = make("--sprite_sizes=3,1,1,2,2,3", "--region=none")
    gray = make("--sprite_sizes=3,1,1,2,2", "--region=none")
    assert colored.space.names == ("shape", "x", "y", "hue")
    assert colored.image_shape == (64, 64, 3)
    images = colored.render_array(colored.splits.grid)
    plain = gray.render_array(gray.splits.grid)[..., 0]
    for hue, channel in enumerate((0, 1, 2)):  # red, green, blue
        np.testing.assert_array_equal(images[hue::3, ..., channel], plain)
        rest = np.delete(images[hue::3], channel, axis=-1)
        assert not rest.any()


def test_factors_and_published_splits() -> None:
    dataset = make()
    assert dataset.space.names == (
        "shape",
        "scale",
        "orientation",
        "x",
        "y",
    )
    assert dataset.space["shape"].names == (
        "square",
        "ellipse",
        "heart",
    )
    assert dataset.space["orientation"].periodic
    assert not dataset.has_position
    assert 0 < dataset.splits.is_ood.sum() < 50
    assert dataset.splits.hidden == ()
    half = make("--region=montero:extrapolation")
    assert half.splits.is_ood.mean() == 0.5
    assert half.splits.hidden == ("x",)


@pytest.mark.parametrize("region", ["montero:element", "wiedemer:orthogonal"])
def test_shapes_without_symmetry_have_no_copies(
    region: str,
) -> None:
    small = (
        "--grid_size=16",
        "--sprite_sizes=3,3,4,4,4",
        f"--region={region}",
    )
    with_copies = make(*small)
    without = make(*small, "--sprite_shapes=heart,triangle,l")
    assert without.space["shape"].names == (
        "heart",
        "triangle",
        "l",
    )
    assert with_copies.copies.is_copy.any()
    assert not without.copies.is_copy.any()


@pytest.mark.parametrize("shapes", ["circle", "", "heart,heart", "heart,l"])
def test_impossible_shapes_are_refused(shapes: str) -> None:
    with pytest.raises(ConfigError, match="--sprite_s"):
        make(f"--sprite_shapes={shapes}")
