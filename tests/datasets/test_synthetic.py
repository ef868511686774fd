"""Stripes and composed objects against slow definitions."""

import math

import numpy as np
import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.regions import parse_region

OBJECTS = "x_a+y_a,x_b+y_b"
EACH = pytest.mark.parametrize("name", ["sum", "product", "occlusion"])


def make(name: str, *flags: str) -> Dataset:
    flags = ("--flagfile=composed.flags", f"--composition={name}", *flags)
    return make_dataset(parse_config(flags))


def share(distance: float) -> float:
    return 1 / (1 + math.exp((distance - 0.25 * 16) / 0.5))


@EACH
def test_images_against_their_definition(name: str) -> None:
    point = [5.2, 7.1, 9.3, 8.4]
    image = make(name).render(np.float32([point]))[0].numpy()
    assert image.shape == (16, 16, 1)
    for row, column in np.ndindex(16, 16):
        a = share(math.hypot(column - point[0], row - point[1]))
        b = share(max(abs(column - point[2]), abs(row - point[3])))
        expected = {
            "sum": 0.7 * a + 0.9 * b,
            "product": (1 - 0.7 * a) * (1 - 0.9 * b),
            "occlusion": 0.7 * a + (1 - a) * 0.9 * b,
        }[name]
        assert image[row, column, 0] == pytest.approx(expected, abs=1e-5)


@EACH
def test_only_sums_are_additive_in_the_objects(name: str) -> None:
    """The share of their interaction in the variance over the whole grid."""
    dataset = make(name)
    images = dataset.render_array(dataset.space.grid()).astype(float)
    images = images.reshape(36, 36, 256)
    parts = images - images.mean(0) - images.mean(1)[:, None]
    rest = np.var(parts, axis=(0, 1)).sum()
    interaction = rest / np.var(images, axis=(0, 1)).sum()
    low, high = {"sum": (0, 1e-9), "product": (0.03, 0.1)}.get(name, (0.1, 0.2))
    assert low <= interaction <= high
    alone = dataset.render_array(dataset.space.grid()[100:103])
    np.testing.assert_array_equal(
        alone.ravel(), images.reshape(-1, 256)[100:103].ravel()
    )
    expected = 1.0 if name == "product" else 0.0
    assert dataset.ground == expected
    corner = images.reshape(-1, 16, 16)[-1, 0, 0]  # both far away
    assert corner == pytest.approx(expected, abs=1e-3)


def test_supports_by_object() -> None:
    space = make("sum", "--num_positions=3").space
    grid, index = space.grid(), space.to_index(space.grid())
    axes = parse_region(f"wiedemer:orthogonal:{OBJECTS}", space).contains(grid)
    near = parse_region(f"wiedemer:diagonal:.5:{OBJECTS}", space).contains(grid)
    for row, (x_a, y_a, x_b, y_b) in enumerate(index):
        assert axes[row] == ((x_a, y_a) != (1, 1) and (x_b, y_b) != (1, 1))
        assert near[row] == (abs(x_a - x_b) > 1 or abs(y_a - y_b) > 1)
    assert (~axes).sum() == 2 * 9 - 1
    alone = parse_region("wiedemer:orthogonal", space).contains(grid)
    assert (~alone).sum() == 1 + 4 * 2


def make_stripes(*flags: str) -> Dataset:
    return make_dataset(parse_config(["--flagfile=stripes.flags", *flags]))


def test_stripes_show_every_value_of_one_factor() -> None:
    train = make_stripes().splits.train
    assert train.shape == (56, 2)
    assert (np.isnan(train).sum(axis=1) == 1).all()
    for column in range(2):
        values = train[:, column]
        values = np.sort(values[~np.isnan(values)])
        np.testing.assert_array_equal(values, np.arange(28))

    dataset = make_stripes("--num_bumps=100")
    bumps = dataset.splits.train[56:]
    assert bumps.shape == (100, 2)
    assert len(np.unique(bumps, axis=0)) == 100
    assert not dataset.region.contains(bumps).any()
    assert dataset.splits.is_test.sum() == 588 - 100


def test_truths_are_bump_and_plus() -> None:
    dataset = make_stripes()
    factors = np.array([[5.0, 9.0]], np.float32)
    bump = dataset.render_array(factors)[0, :, :, 0]
    plus = dataset.render_array(factors, dataset.other_truths["plus"])
    plus = plus[0, :, :, 0]
    stripes = np.array([[5.0, np.nan], [np.nan, 9.0]], np.float32)
    vertical, horizontal = dataset.render_array(stripes)[..., 0]
    np.testing.assert_allclose(plus, vertical + horizontal, rtol=1e-6)
    np.testing.assert_allclose(bump, vertical * horizontal, atol=1e-7)
    assert np.unravel_index(plus.argmax(), plus.shape) == (9, 5)
