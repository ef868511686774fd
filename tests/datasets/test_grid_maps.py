"""Labelled maps, and the planes in which they are cut."""

import itertools

import numpy as np

from tests.own_factors import TILES
from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    make_categories,
)
from tfcomp.datasets.grid_maps import (
    GridMap,
    find_interval,
    list_curves,
    list_planes,
)

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


ANGLE = Factor("angle", 6, 0.0, 360.0, periodic=True)
DIGITS = make_categories("digit", [4, 0])


def test_one_factor_is_one_curve() -> None:
    (curve,) = list_curves(FactorSpace((ANGLE,)))
    assert curve.label == "angle"
    assert curve.rows.tolist() == list(range(6))


def test_a_curve_for_every_name() -> None:
    for factors in ((DIGITS, ANGLE), (ANGLE, DIGITS)):
        space = FactorSpace(factors)
        curves = list_curves(space)
        assert [c.label for c in curves] == ["digit 0", "digit 4"]
        column = space.names.index("angle")
        for curve, digit in zip(curves, (0, 4), strict=True):
            points = space.grid()[curve.rows]
            np.testing.assert_array_equal(points[:, column], ANGLE.values())
            assert set(points[:, 1 - column]) == {digit}


def test_interval_of_a_gap() -> None:
    (curve,) = list_curves(FactorSpace((ANGLE,)))
    inside = np.array([0, 0, 1, 1, 1, 0])
    assert find_interval(curve, inside) == (120.0, 240.0)
    assert find_interval(curve, np.roll(inside, 3)) is None
    assert find_interval(curve, np.zeros(6)) is None
