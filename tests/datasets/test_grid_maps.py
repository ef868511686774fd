"""Labelled maps, and the planes in which they are cut."""

import itertools

import numpy as np

from tests.own_factors import TILES
from tfcomp.datasets.grid_maps import GridMap, list_planes

SHAPE = TILES.shape


def test_planes_show_held_out_and_known_points() -> None:
    x, size, _, color = TILES.grid().T
    is_ood = (x >= 6) & (x < 12) & (size < 2) & (color == 1)
    mask = is_ood.reshape(SHAPE)
    planes = list_planes(TILES.factors, mask, ~mask)
    names = [f.name for f in TILES if not f.categorical]
    pairs = ["_".join(pair) for pair in itertools.combinations(names, 2)]
    assert [plane.name for plane in planes] == pairs
    assert [plane.held for plane in planes] == [
        "phase 144, color green",
        "size 1.5, color green",
        "x 6, color green",
    ]
    for plane in planes:
        assert 0 < mask[plane.index].sum() < mask[plane.index].size


def test_two_factors_have_one_plane() -> None:
    mask = np.eye(6, 4) > 0
    (plane,) = list_planes(TILES.factors[:2], mask, ~mask)
    assert (plane.name, plane.held) == ("x_size", "")
    np.testing.assert_array_equal(mask[plane.index], mask)


def test_maps_carry_their_factors(rng: np.random.Generator) -> None:
    values = rng.random(SHAPE)
    mask = values > 0.9
    whole = GridMap(values, TILES.factors, mask)
    (plane, *_) = list_planes(TILES.factors, mask, ~mask)
    cut = whole.cut(plane)
    assert [factor.name for factor in cut.factors] == ["x", "size"]
    phase, color = plane.index[2:]
    np.testing.assert_array_equal(cut.values, values[:, :, phase, color])
    np.testing.assert_array_equal(cut.mask, mask[:, :, phase, color])
    marginal = whole.average(3)
    assert marginal.factors == (TILES["color"],)
    np.testing.assert_allclose(marginal.values, values.mean(axis=(0, 1, 2)))
    np.testing.assert_array_equal(marginal.mask, mask.any(axis=(0, 1, 2)))
